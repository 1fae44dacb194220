"""Kubernetes dictionaries read into immutable specs."""
