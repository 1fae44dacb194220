"""Kinds of which controllers make pods, other than Deployments and ReplicaSets."""
