"""The gate: is a change of a cluster's policy good for whom? Two policies, the same workloads, and expectations."""
