"""What nobody here serves, and who says so."""
