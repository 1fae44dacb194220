"""The end of a session: what it writes, and what it reports."""
