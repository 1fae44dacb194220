"""What becomes of pods, in Event objects."""
