"""Candidates for eviction for a task, and the nodes to try."""
