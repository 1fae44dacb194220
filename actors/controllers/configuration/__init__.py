"""The scheduler's configuration in the cluster itself: a ConfigMap, followed."""
