"""Short sentences for `kubectl explain`: what the main fields of Volcano's kinds and of pods are for."""

from typing import Final

NOTES: Final[dict[str, str]] = {}
