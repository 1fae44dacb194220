"""Moments as people write them and as the core takes them: RFC 3339 text and float seconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

DEFAULT_NOW: Final = "2026-11-21T02:00:00Z"
"""The clock of a case that names none; only "long ago" and "far ahead" matter there."""

BEGAN: Final = 1_577_836_800.0
"""2020-01-01T00:00:00Z, when a workload begins that names no start: the same in every run, so that scores repeat.
"""


def parse_moment(text: str) -> float:
    """Return seconds since the epoch of an RFC 3339 text or a plain number; ValueError for another text."""
    try:
        return float(text)
    except ValueError:
        pass
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"expected a time zone (for example a trailing Z) in {text!r}")
    return moment.timestamp()


def format_moment(seconds: float) -> str:
    """Return an API timestamp: RFC 3339, UTC, second resolution."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
