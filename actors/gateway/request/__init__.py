"""Reading of a request, and of the form its answer must have."""
