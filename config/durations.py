"""Go durations: ``1h2m3.5s``, ``100ms``, ``-1.5us``. Source: ``time.ParseDuration``."""

from __future__ import annotations

import re
from typing import Final

EXPECTED: Final = "a duration such as 100ms, 1.5s or 1h30m"

_UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # micro sign
    "\u03bcs": 1_000,  # Greek mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|\u03bcs|ms|s|m|h)", re.ASCII)
_LONGEST_NS = 2**63 - 1


def parse_duration(text: str) -> float:
    """Seconds. Raises ValueError for what Go refuses: no unit, no digits, an unknown unit, more than 292 years."""
    return parse_duration_ns(text) / 1e9


def parse_duration_ns(text: str) -> int:
    """Nanoseconds, fractions of one cut off. Raises ValueError."""
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    total = 0
    position = 0
    while position < len(rest):
        match = _PART.match(rest, position)
        if match is None or not (match[1] or match[2]):
            break
        unit = _UNITS_NS[match[3]]
        total += int(match[1] or "0") * unit
        if match[2]:
            total += int(match[2]) * unit // 10 ** len(match[2])
        position = match.end()
    if not rest or position < len(rest) or total > _LONGEST_NS + negative:
        raise ValueError(f"{text!r} is not {EXPECTED}")
    return -total if negative else total
