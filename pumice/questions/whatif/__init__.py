"""Comparison of two futures: a state is lived through on virtual time, once as it is and once changed."""
