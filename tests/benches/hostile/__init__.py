"""One request of at most 64 KiB, and how long it holds a large cluster."""
