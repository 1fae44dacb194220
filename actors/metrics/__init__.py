"""Volcano's metrics, and what a run says at its end."""
