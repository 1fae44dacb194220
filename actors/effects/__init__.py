"""Decisions carried out: binds, evictions, statuses."""
