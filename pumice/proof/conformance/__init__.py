"""Runs conformance cases (what the real Volcano does, as data) and counts what holds."""
