"""What commands are given: configurations, manifests, journals, servers."""
