"""Remembering what was said of texts from outside, of short ones only: a cache of long ones is as large as they are."""

from __future__ import annotations

from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST: Final = 512

P = ParamSpec("P")
R = TypeVar("R")


def remembers(size: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`lru_cache` for a function whose last argument is a text (or a number): a long one is looked at every time."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        cached = lru_cache(maxsize=size)(function)

        @wraps(function)
        def look(*args: P.args, **kwargs: P.kwargs) -> R:
            text = args[-1]
            if isinstance(text, str) and len(text) > LONGEST:
                return function(*args, **kwargs)
            return cached(*args, **kwargs)  # type: ignore[arg-type]  # lru_cache knows of no parameters

        return look

    return decorate
