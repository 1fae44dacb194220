"""Actors that host machines of the cluster."""
