"""A cycle beside that of another scheduler on the same state: what the two did alike, and what otherwise."""
