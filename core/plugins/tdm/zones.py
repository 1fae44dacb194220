"""Revocable zones: spans of the day during which their nodes may be used. Source: Volcano tdm (`parseRevocableZone`),
which reads them by the clock of its machine; here the configuration says whose clock it is.
"""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING, Final

from pumice.config.time_zones import WallClock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo

_CLOCK_TIME: Final = re.compile(r"([0-9]{1,2}):([0-9]{2})(.*)", re.ASCII | re.DOTALL)


class ZoneError(ValueError):
    """Why a zone cannot be used now, in Volcano's words."""


class Zones:
    """Zones by name, "HH:MM-HH:MM" each by the clock of a time zone, as of `now` (seconds since the epoch).

    A span that ends before it starts runs into the next day. As in Volcano it begins today, so that between midnight
    and its end it is not seen; `past_midnight` (fix) sees it.
    """

    def __init__(
        self, spans: Mapping[str, str], now: float, *, time_zone: tzinfo = UTC, past_midnight: bool = False
    ) -> None:
        self._spans = spans
        self._now = int(now // 1)
        self._clock = WallClock(now, time_zone)
        self._past_midnight = past_midnight
        self._problems: dict[str, str] = {}

    def problem(self, zone: str) -> str:
        """Why the zone cannot be used now; "" when it can."""
        if zone not in self._problems:
            self._problems[zone] = self._find_problem(zone)
        return self._problems[zone]

    def _find_problem(self, zone: str) -> str:
        if zone not in self._spans:
            return f"revocable zone {zone} not support"
        try:
            first, last = parse_span(self._spans[zone])
        except ZoneError as error:
            return str(error)
        if any(start <= self._now <= end for start, end in self._windows(first, last)):
            return ""
        return f"current time beyond revocable zone {zone}:{self._spans[zone]}"

    def _windows(self, first: int, last: int) -> list[tuple[int, int]]:
        moment, nights = self._clock.moment, int(first >= last)
        days = (-1, 0) if self._past_midnight and nights else (0,)
        return [(moment(day, first), moment(day + nights, last)) for day in days]

    def next_change(self) -> float | None:
        """When a zone opens or closes next; None without zones."""
        moments: list[int] = []
        for text in self._spans.values():
            try:
                first, last = parse_span(text)
            except ZoneError:
                continue
            # A zone is open to the end of its last second; midnight ends every zone that began the day before.
            moments.append(self._clock.moment(1, 0))
            for day in (0, 1):
                moments += [self._clock.moment(day, first), self._clock.moment(day, last) + 1]
        return float(min((m for m in moments if m > self._now), default=0)) or None


def parse_span(text: str) -> tuple[int, int]:
    """(start, end) of "HH:MM-HH:MM" in seconds since midnight. Raises ZoneError."""
    parts = text.strip().split("-")
    if len(parts) != 2:
        raise ZoneError(f"revocable zone {text} format error")
    return parse_clock_time(parts[0]), parse_clock_time(parts[1])


def parse_clock_time(text: str) -> int:
    """Seconds since midnight of "15:04". Raises ZoneError with the words of Go's time.Parse."""
    match = _CLOCK_TIME.fullmatch(text)
    whole = f'parsing time "{text}"'
    if match is None:
        hour = re.match(r"[0-9]{1,2}", text, re.ASCII)
        rest = text[hour.end() :] if hour else text
        wanted = "15" if hour is None else ":" if not rest.startswith(":") else "04"
        found = rest[1:] if wanted == "04" else rest
        raise ZoneError(f'{whole} as "15:04": cannot parse "{found}" as "{wanted}"')
    hours, minutes = int(match[1]), int(match[2])
    if hours >= 24:
        raise ZoneError(f"{whole}: hour out of range")
    if minutes >= 60:
        raise ZoneError(f"{whole}: minute out of range")
    if match[3]:
        raise ZoneError(f'{whole}: extra text: "{match[3]}"')
    return hours * 3600 + minutes * 60
