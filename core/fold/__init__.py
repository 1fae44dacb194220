"""Folding changes into the scheduler's view: as the cache does it immediately, and as replays do it later."""
