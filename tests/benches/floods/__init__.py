"""Clients that take what they can: memory, probes and the log of a `pumice run --http` during each flood and after."""
