"""Claims get volumes, and pods the claims that they bring along."""
