"""Types of the fields of every kind that the scheduler or a controller reads."""
