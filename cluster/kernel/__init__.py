"""The kernel: one cluster as one object, driven by a shell."""
