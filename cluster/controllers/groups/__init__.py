"""PodGroups for pods that nobody has given one."""
