"""Durations as Go writes them: `1h30m`, `1.5s`, `250ms`, `0`."""

from __future__ import annotations

import re
from typing import Final

from core.short_texts import remembers

_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE: Final = re.compile(r"([+-]?)((?:(?:\d++\.?+\d*+|\.\d++)(?:ns|us|µs|μs|ms|s|m|h))++)", re.ASCII)


@remembers(1024)
def duration_s(text: str) -> float | None:
    """Seconds (Go's `time.ParseDuration`); None for what is no duration."""
    if text in ("0", "+0", "-0"):
        return 0.0
    match = _WHOLE.fullmatch(text)
    if match is None:
        return None
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(match[2]))
    return -seconds if match[1] == "-" else seconds
