"""State of the scheduler: specs shared, columns copied."""
