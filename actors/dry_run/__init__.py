"""Trial preemption, fanned out over workers."""
