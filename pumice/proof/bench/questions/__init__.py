"""Measurements of questions about a cluster."""
