"""Scheduling cycles in this process, without actors: the common part of `decide` and `conformance`."""
