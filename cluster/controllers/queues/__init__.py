"""Queues: their states, and how many PodGroups they hold."""
