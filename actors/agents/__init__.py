"""Node agents: bound pods start, run and end."""
