"""Scenarios as tables: given nodes, queues and jobs; expected binds, and for each pod that waits the reason."""
