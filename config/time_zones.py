# SPDX-License-Identifier: Apache-2.0
"""Time zones by their IANA names, for spans of the day on a wall clock."""

from __future__ import annotations

from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

UTC: Final = "UTC"


@lru_cache
def time_zone(name: str) -> tzinfo:
    """Return the zone of that name, such as Europe/Berlin. Raises ValueError for an unknown one."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError) as error:  # a folder, a path with .., a name that does not exist
        raise ValueError(f"no time zone {name!r} is known here") from error


class WallClock:
    """The days around a moment (seconds since the epoch), as a wall clock in a zone shows them."""

    def __init__(self, now: float, zone: tzinfo) -> None:
        self._zone = zone
        self._today = datetime.fromtimestamp(now, zone).date()

    def moment(self, days: int, seconds: int) -> int:
        """Return the time when the clock shows `seconds` since midnight, `days` after today; seconds since the epoch.

        A time that a change of the clocks skips counts from before the change; one that comes twice is the first.
        """
        day: date = self._today + timedelta(days=days)
        midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - the zone is put on below, on the sum
        return int((midnight + timedelta(seconds=seconds)).replace(tzinfo=self._zone).timestamp())
