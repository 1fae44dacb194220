"""Remembering what was said of texts from outside, of short ones only: a cache of long ones is as large as they are."""

from __future__ import annotations

from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST: Final = 512

R = TypeVar("R")


def remembers(size: int) -> Callable[[Callable[[str], R]], Callable[[str], R]]:
    """`lru_cache` for a function of a text: a long one is looked at every time."""

    def decorate(function: Callable[[str], R]) -> Callable[[str], R]:
        cached = lru_cache(maxsize=size)(function)

        @wraps(function)
        def look(text: str) -> R:
            return cached(text) if len(text) <= LONGEST else function(text)

        return look

    return decorate
