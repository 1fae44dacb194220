"""What commands show a person, where that is more than a few lines."""
