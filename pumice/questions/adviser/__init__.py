"""Who is next, what each job waits for, and when it will start: over one decided cycle, as plain data."""
