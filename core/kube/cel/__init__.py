"""CEL, as far as device selectors and rules of definitions need it."""
