"""What the server says of itself: its kinds, their schemas, its version."""
