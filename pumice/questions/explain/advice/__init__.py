"""Advice for a waiting job: changes that were tried, each by deciding the cycle again with it."""
