"""Kubernetes' own scheduler: pods that ask for it are placed one at a time, by its default profile."""
