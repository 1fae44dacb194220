"""What docs/stability.md promises, as lists of names that may grow and not shrink."""
