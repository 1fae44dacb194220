"""Facts about the server: its kinds, their schemas, its version."""
