"""What a simulated container does: its command and arguments, read as a shell reads them. Pure, and nothing is run."""
