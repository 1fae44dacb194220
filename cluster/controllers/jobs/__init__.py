"""Volcano Jobs: their pods and PodGroups, policies, retries, and their end."""
