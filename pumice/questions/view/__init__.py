"""A journal that nobody runs, on the page."""
