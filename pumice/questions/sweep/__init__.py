"""Sweeps: the same question asked of many configurations, seeds, traces and sizes, as one table."""
