"""What is where, as a picture needs it: read off a view, which it does not change."""
