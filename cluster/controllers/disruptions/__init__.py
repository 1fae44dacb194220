"""The statuses of PodDisruptionBudgets."""
