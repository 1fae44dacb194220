"""Volcano's metrics, and the summary of a run."""
