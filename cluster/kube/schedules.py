# SPDX-License-Identifier: Apache-2.0
"""Cron schedules as Kubernetes reads them (robfig/cron's `ParseStandard`), on the cronsim library.

Five fields, `@hourly` and its like, `@every 1h30m`. A time that a zone skips in spring does not come; one that it has
twice in autumn comes twice. What only other crons know (`L`, `#`, a seventh weekday) is refused.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Final, Protocol

from cronsim import CronSim, CronSimError

from pumice.config.durations import duration_s
from pumice.config.time_zones import time_zone

WORDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
EVERY: Final = "@every "
_NAMES: Final = ("minute", "hour", "day of month", "month", "day of week")
_VALUE: Final = r"(?:[0-9]+|[A-Za-z]{3})"
_FIELD: Final = re.compile(rf"(?:\*|\?|{_VALUE}(?:-{_VALUE})?)(?:/[0-9]+)?")
_SUNDAY_AGAIN: Final = re.compile(r"(?<![0-9/])7(?![0-9])")
_WHOLE_RANGES: Final = {2: "1-31", 4: "0-6"}


class ScheduleError(ValueError):
    """Problem of a schedule, as a sentence."""


class TimesOfSchedule(Protocol):
    """Times of a schedule."""

    def after(self, moment: float) -> float | None:
        """Return the first time after a moment, both in seconds since the epoch; None without one."""
        ...


class _Regular:
    """A schedule with a fixed period after the last time."""

    def __init__(self, period_s: float) -> None:
        # whole seconds and at least one, as robfig/cron's `Every`
        self._period_s = max(math.floor(period_s), 1)

    def after(self, moment: float) -> float | None:
        """Return the first time after a moment, both in seconds since the epoch; None without one."""
        # robfig/cron's ConstantDelaySchedule takes the fraction of the last time off, so the times stay on whole
        # seconds.
        return float(math.floor(moment) + self._period_s)


class _Fields:
    def __init__(self, expression: str, zone: tzinfo) -> None:
        self._expression, self._zone = f"0 {expression}", zone

    def after(self, moment: float) -> float | None:
        """Return the first time after a moment, both in seconds since the epoch; None without one."""
        since = datetime.fromtimestamp(math.floor(moment), self._zone)
        try:
            return next(CronSim(self._expression, since)).timestamp()
        except StopIteration:
            return None


class _Never:
    """A schedule on a day that none of its months has, such as 30 February: robfig/cron accepts it, and it never
    comes.
    """

    def after(self, moment: float) -> float | None:
        """Return None: no time comes."""
        return None


@lru_cache(maxsize=256)
def read_schedule(text: str, zone: str = "") -> TimesOfSchedule:
    """Read a schedule. Raises ScheduleError. `zone`: the IANA name of its time zone; "" for UTC."""
    words = text.split()
    if text.startswith(EVERY):
        period_s = duration_s(text.removeprefix(EVERY).strip())
        if period_s is None:
            raise ScheduleError(f"failed to parse duration {text}")
        return _Regular(period_s)
    if text.startswith("@"):
        if text not in WORDS:
            raise ScheduleError(f"unrecognized descriptor: {text}")
        words = WORDS[text].split()
    if len(words) != len(_NAMES):
        raise ScheduleError(f"expected exactly {len(_NAMES)} fields, found {len(words)}: [{' '.join(words)}]")
    expression = " ".join(_field(number, word) for number, word in enumerate(words))
    try:
        found = time_zone(zone) if zone else UTC
    except ValueError:
        raise ScheduleError(f"unknown time zone {zone}") from None
    try:
        CronSim(f"0 {expression}", datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        if _has_no_day(expression):
            return _Never()
        raise ScheduleError(f"{error}: {text}".replace("-", " ", 2).lower()) from None
    return _Fields(expression, found)


def _has_no_day(expression: str) -> bool:
    """Return whether each field is valid and only the months lack such a day: with all months the schedule is valid."""
    minute, hour, day, month, weekday = expression.split()
    try:
        for parts in ((minute, hour, day, "*", weekday), (minute, hour, "*", month, weekday)):
            CronSim(" ".join(("0", *parts)), datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError:
        return False
    return True


def _field(number: int, text: str) -> str:
    """Return a field as cronsim takes it; a step over every day counts as named days (joined by "or")."""
    parts = text.split(",")
    if not all(_FIELD.fullmatch(part) for part in parts) or (number == 4 and _SUNDAY_AGAIN.search(text)):
        raise ScheduleError(f"bad {_NAMES[number]}: {text}")
    settled = [part.replace("?", "*") for part in parts]
    if number in _WHOLE_RANGES:
        whole = _WHOLE_RANGES[number]
        settled = [part.replace("*", whole) if part.startswith("*/") and part != "*/1" else part for part in settled]
        settled = ["*" if part == "*/1" else part for part in settled]
    return ",".join(settled)
