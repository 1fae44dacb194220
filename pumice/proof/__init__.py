"""Proof: storms, benchmarks, conformance."""
