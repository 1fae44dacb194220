"""Searches for the smallest change that lets a job start; see `starting`."""
