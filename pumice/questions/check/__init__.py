"""What a scheduler configuration will do, and what of it will have no effect."""
