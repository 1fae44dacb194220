"""Readers of what people hand in: manifests, `kubectl` dumps, traces."""
