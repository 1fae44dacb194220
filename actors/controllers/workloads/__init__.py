"""Deployments and ReplicaSets."""
