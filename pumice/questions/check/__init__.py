"""Effects of a scheduler configuration, and its settings that will have none."""
