"""Whole numbers in texts from outside: in digits of ASCII, of 64 bits."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 64  # with zeros in front
_MOST: Final = 2**63 - 1


def whole_number(text: str) -> int | None:
    """The number; None for anything but digits, and for one that is too large."""
    if not text.isdigit() or not text.isascii() or len(text) > _LONGEST:
        return None
    number = int(text)
    return number if number <= _MOST else None
