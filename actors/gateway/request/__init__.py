"""What is read of a request, and what its answer is to be like."""
