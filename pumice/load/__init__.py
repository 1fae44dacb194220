"""Readers of input files: manifests, `kubectl` dumps, traces."""
