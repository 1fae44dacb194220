# SPDX-License-Identifier: Apache-2.0
"""Texts from outside: remembered answers about short ones, and reading of whole numbers.

A cache of long texts would be as large as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

# --- Whole numbers: digits of ASCII, of 64 bits

_LONGEST: Final = 64  # with zeros in front
_MOST: Final = 2**63 - 1


def whole_number(text: str) -> int | None:
    """Return the number; None for a text with other characters than digits, and for a too large number."""
    if not text.isdigit() or not text.isascii() or len(text) > _LONGEST:
        return None
    number = int(text)
    return number if number <= _MOST else None


LONGEST: Final = 512

R = TypeVar("R")


class _Said(dict[str, R]):
    """A function's answers about texts; the function is called for unknown texts. A dictionary answers faster than a
    call.
    """

    def __init__(self, function: Callable[[str], R], size: int) -> None:
        super().__init__()
        self._function, self._size = function, size

    def __missing__(self, text: str) -> R:
        said = self._function(text)
        if len(text) <= LONGEST:
            if len(self) >= self._size:
                self.clear()
            self[text] = said
        return said


def remembers(size: int) -> Callable[[Callable[[str], R]], Callable[[str], R]]:
    """Remember a function's answers about so many texts, then begin anew; a long text is computed every time."""
    return lambda function: _Said(function, size).__getitem__
