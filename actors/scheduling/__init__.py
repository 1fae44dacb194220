"""The scheduler's view, and a cycle from snapshot to commit."""
