"""Folding what happened into the scheduler's view: as the cache does it at once, and replays later."""
