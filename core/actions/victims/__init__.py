"""Candidates for eviction for a task, and the nodes on which it is worth asking."""
