"""Advice for a job that waits: changes that were tried, each by deciding the cycle again with it."""
