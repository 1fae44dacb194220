"""Kubernetes' own Jobs (batch/v1)."""
