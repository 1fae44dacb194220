"""Questions and reports about a cluster or a record."""
