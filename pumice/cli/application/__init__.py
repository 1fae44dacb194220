"""The application: the table of commands, and the way from one to its exit code."""
