"""Room for whole gangs at the cost of others."""
