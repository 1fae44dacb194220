"""What is handed in at its time."""
