"""The end of a session: its writes and its report."""
