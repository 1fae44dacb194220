"""Measurements of futures lived through."""
