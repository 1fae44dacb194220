"""Invariants of a storm: the monitor and its books."""
