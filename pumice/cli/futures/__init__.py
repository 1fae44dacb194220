"""Options that commands about futures share, and the display of differences."""
