"""What if: a state is lived through on virtual time, once as it is and once changed, and both are compared."""
