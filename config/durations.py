# SPDX-License-Identifier: Apache-2.0
"""Go durations: ``1h2m3.5s``, ``100ms``, ``-1.5us``. Source: ``time.ParseDuration``, step by step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPECTED: Final = "a duration such as 100ms, 1.5s or 1h30m"

_UNITS_NS: Final[Mapping[str, int]] = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # micro sign
    "\u03bcs": 1_000,  # Greek mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
# Possessive (`*+`): digits that no unit follows would otherwise be given back and tried one by one.
_PART = re.compile(r"([0-9]*+)(?:\.([0-9]*+))?(ns|us|µs|\u03bcs|ms|s|m|h)", re.ASCII)
_LONGEST_NS = 2**63 - 1
SECOND_NS: Final = 1_000_000_000


def parse_duration(text: str) -> float:
    """Return seconds. Raises ValueError for what Go refuses: no unit, no digits, an unknown unit, more than 292
    years.
    """
    return parse_duration_ns(text) / 1e9


def duration_s(text: str) -> float | None:
    """Return seconds; None for a text that is not a duration."""
    if not text:  # mostly: there is nothing at all, and to raise and catch an error for that costs more than to look
        return None
    try:
        return parse_duration(text)
    except ValueError:
        return None


def parse_duration_ns(text: str) -> int:
    """Return nanoseconds, fractions of one cut off. Raises ValueError."""
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
        total += int(match[1] or "0") * _UNITS_NS[match[3]] + _fraction_ns(match[2] or "", _UNITS_NS[match[3]])
        position = match.end()
    # Go's Duration has 64 bits with a sign: there is one more nanosecond below zero than above.
    if not rest or position < len(rest) or total > _LONGEST_NS + negative:
        raise ValueError(f"{text!r} is not {EXPECTED}")
    return -total if negative else total


def format_duration(nanoseconds: int) -> str:
    """Return Go's spelling, as `time.Duration.String` has it: ``1h0m30s``, ``1.5s``, ``250ms``, ``0s``."""
    sign, left = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if 0 < left < SECOND_NS:
        unit = next(unit for unit in ("ms", "µs", "ns") if left >= _UNITS_NS[unit])
        return f"{sign}{left / _UNITS_NS[unit]:.9f}".rstrip("0").rstrip(".") + unit
    seconds, rest = divmod(left, SECOND_NS)
    hours, minutes = seconds // 3600, seconds // 60 % 60
    text = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{sign}{text}{seconds % 60}{fraction}s"


def _fraction_ns(digits: str, unit: int) -> int:
    """Return the nanoseconds of a fraction of a unit, in Go's own floating point: ``0.3333333333333333333h`` is 20
    minutes, and no nanosecond less. Digits that do not fit into Go's number are not read.
    """
    read, scale = 0, 1.0
    for digit in digits:
        longer = read * 10 + int(digit)
        if read > _LONGEST_NS // 10 or longer > _LONGEST_NS + 1:
            break
        read, scale = longer, scale * 10.0
    return int(float(read) * (unit / scale)) if read else 0
