"""Scheduling cycles in this process, without actors: what `decide` and `conformance` have in common."""
