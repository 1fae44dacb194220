"""A real cluster that is scheduled from here: followed, and written to."""
