"""Topology-aware preemption: one preemptor tried on many nodes, of which the least loss is taken."""
