"""What every namespace holds."""
