"""Tables that commands show to people, where the output is more than a few lines."""
