"""The plugins of a session, written out in one table."""
