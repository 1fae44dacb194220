"""ReplicationControllers."""
