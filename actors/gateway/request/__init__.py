"""Reading of a request, and of the required form of its answer."""
