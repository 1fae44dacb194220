"""Numbers as bars of one character."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVELS: Final = "▁▂▃▄▅▆▇█"
FULL: Final = "█"
EMPTY: Final = "·"


def sparkline(values: Sequence[float], most: float | None = None) -> str:
    """A character a value, from 0 to `most` (None: the largest of them). What lies beyond is drawn as the nearest."""
    top = max(values, default=0.0) if most is None else most
    steps = len(LEVELS) - 1
    return "".join(LEVELS[min(max(round(value / top * steps), 0), steps) if top > 0 else 0] for value in values)


def bar(part: float, width: int) -> str:
    """A part from 0 to 1 (more counts as 1) of so many characters; anything at all is shown."""
    filled = min(max(round(part * width), 1 if part > 0 else 0), width)
    return FULL * filled + EMPTY * (width - filled)
