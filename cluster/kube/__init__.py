"""Kubernetes' conventions that several actors need, as pure functions on objects."""
