# SPDX-License-Identifier: Apache-2.0
"""Durations and timestamps of CEL, read and shown as Go has them, to the nanosecond."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Final

from pumice.config.time_zones import time_zone
from pumice.core.kube.cel.numbers import NumberError

if TYPE_CHECKING:
    from collections.abc import Callable

_SECOND: Final = 1_000_000_000
# Go reads two signs for micro: U+00B5 and the Greek letter U+03BC.
_UNITS: Final = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": _SECOND} | {
    "m": 60 * _SECOND,
    "h": 3_600 * _SECOND,
}
_PART: Final = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)")
_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_DAY: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_OFFSET: Final = re.compile(r"([+-]?\d+):(\d+)", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# cel-go's minUnixTime and maxUnixTime (`common/types/timestamp.go`), the latter to its last nanosecond.
_FIRST: Final = -62_135_596_800 * _SECOND
_LAST: Final = 253_402_300_800 * _SECOND - 1
_LONGEST: Final = 128
_MOST_HOURS: Final = 10_000


class TimeError(ValueError):
    """A text that is not a duration, timestamp or time zone."""


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time."""

    nanoseconds: int

    def __post_init__(self) -> None:
        if not -(2**63) <= self.nanoseconds < 2**63:
            raise NumberError("integer overflow")

    def __str__(self) -> str:
        sign, (seconds, fraction) = "-" if self.nanoseconds < 0 else "", divmod(abs(self.nanoseconds), _SECOND)
        return f"{sign}{seconds}{_fraction(fraction)}s"

    def plus(self, other: Duration) -> Duration:
        """Return the sum of two spans."""
        return Duration(self.nanoseconds + other.nanoseconds)

    def minus(self, other: Duration) -> Duration:
        """Return the difference of two spans."""
        return Duration(self.nanoseconds - other.nanoseconds)

    def after(self, moment: Timestamp) -> Timestamp:
        """Return the moment that is so much later."""
        return moment.plus(self)

    def counted(self, unit: int) -> int:
        """Return how many of a unit (in nanoseconds) the duration has, cut towards zero."""
        return abs(self.nanoseconds) // unit * (-1 if self.nanoseconds < 0 else 1)


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A moment: nanoseconds since the epoch, between the years 1 and 9999; `offset`: the zone in which it is shown."""

    nanoseconds: int
    offset: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        if not _FIRST <= self.nanoseconds <= _LAST:
            raise NumberError("timestamp overflow")

    def __str__(self) -> str:
        fraction = _fraction(self.nanoseconds % _SECOND)
        shown = self.at(timedelta(seconds=self.offset)).isoformat()[:19]
        hours, seconds = divmod(abs(self.offset), 3600)
        zone = f"{'-' if self.offset < 0 else '+'}{hours:02d}:{seconds // 60:02d}" if self.offset else "Z"
        return f"{shown}{fraction}{zone}"

    def plus(self, span: Duration) -> Timestamp:
        """Return the moment that is so much later."""
        return Timestamp(self.nanoseconds + span.nanoseconds, self.offset)

    def minus(self, span: Duration) -> Timestamp:
        """Return the moment that is so much earlier."""
        return Timestamp(self.nanoseconds - span.nanoseconds, self.offset)

    def since(self, other: Timestamp) -> Duration:
        """Return the span between two moments."""
        return Duration(self.nanoseconds - other.nanoseconds)

    @property
    def seconds(self) -> int:
        """Return the whole seconds since the epoch."""
        return self.nanoseconds // _SECOND

    def at(self, zone: tzinfo | timedelta) -> datetime:
        """Return it as a clock there, or so far from UTC, shows it. Raises TimeError outside of a clock's years."""
        utc = _EPOCH + timedelta(seconds=self.nanoseconds // _SECOND)
        try:
            return utc + zone if isinstance(zone, timedelta) else utc.astimezone(zone)
        except (OverflowError, ValueError) as error:
            raise TimeError("the timestamp is out of range in this time zone") from error


def _fraction(nanoseconds: int) -> str:
    return f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""


def moment(seconds: int) -> Timestamp:
    """Return a moment by its seconds since the epoch."""
    return Timestamp(seconds * _SECOND)


def duration_of(text: str) -> Duration:
    """Read a duration such as `1h30m` or `-1.5s`. Raises TimeError."""
    body = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if body == "0":
        return Duration(0)
    total, at = 0, 0
    while at < len(body):
        match = _PART.match(body, at) if len(body) <= _LONGEST else None
        if match is None or not (match[1] or match[2]):
            break
        unit, fraction = _UNITS[match[3]], match[2] or ""
        total += int(match[1] or "0") * unit + int(fraction or "0") * unit // 10 ** len(fraction)
        at = match.end()
    # The least int64 has no positive counterpart: -2**63 is a duration, 2**63 is not.
    if not body or at < len(body) or total > 2**63 - (not text.startswith("-")):
        raise TimeError(f"invalid duration {text[:80]!r}")
    return Duration(-total if text.startswith("-") else total)


def timestamp_of(text: str) -> Timestamp:
    """Read a moment as RFC 3339 writes it. Raises TimeError."""
    match = _TIME.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise TimeError(f"cannot read {text[:80]!r} as a time: expected RFC 3339, such as 2006-01-02T15:04:05Z")
    try:
        read = datetime(*(int(match[part]) for part in range(1, 7)), tzinfo=UTC)  # type: ignore[misc,arg-type]
    except ValueError as error:
        raise TimeError(f"cannot read {text[:80]!r} as a time: {error}") from error
    seconds, offset = (read - _EPOCH) // timedelta(seconds=1), 0
    if match[8]:
        hours, minutes = int(match[9]), int(match[10])
        if hours > 24 or minutes > 59:
            raise TimeError(f"cannot read {text[:80]!r} as a time: time zone offset out of range")
        offset = (hours * 3600 + minutes * 60) * (-1 if match[8] == "-" else 1)
    return Timestamp((seconds - offset) * _SECOND + int(f"{match[7] or ''}000000000"[:9]), offset)


def day_of(text: str) -> Timestamp:
    """Read a day such as 2006-01-02: its midnight in UTC. Raises TimeError."""
    if not _DAY.fullmatch(text):
        raise TimeError(f"cannot read {text[:80]!r} as a date")
    return timestamp_of(f"{text}T00:00:00Z")


def _zone(name: str) -> tzinfo | timedelta:
    if ":" in name:
        match = _OFFSET.fullmatch(name)
        if match is None or not 0 <= int(match[2]) <= 59 or abs(int(match[1])) > _MOST_HOURS:
            raise TimeError(f"{name[:80]!r} is not an offset such as +02:00")
        # The sign comes from the text: int("-00") has lost it.
        minutes = int(match[2]) * (-1 if name.startswith("-") else 1)
        return timedelta(hours=int(match[1]), minutes=minutes)
    # Go takes "Local" for the machine's zone; here no answer may depend on the machine.
    if name in ("", "UTC", "Local"):
        return UTC
    try:
        return time_zone(name)
    except ValueError as error:
        raise TimeError(f"unknown time zone {name[:80]}") from error


def _reader(read: Callable[[datetime], int]) -> Callable[..., int]:
    def asked(at: Timestamp, zone: str = "UTC") -> int:
        return read(at.at(_zone(zone)))

    return asked


def _milliseconds(at: Timestamp, zone: str = "UTC") -> int:
    # Only to refuse a zone that does not exist: all zones have the same milliseconds.
    _zone(zone)
    return at.nanoseconds % _SECOND // 1_000_000


GETTERS: Final[dict[str, Callable[..., int]]] = {
    "getFullYear": _reader(lambda at: at.year),
    # The CEL specification counts months, days of the year and getDayOfMonth from 0, getDate from 1.
    "getMonth": _reader(lambda at: at.month - 1),
    "getDate": _reader(lambda at: at.day),
    "getDayOfMonth": _reader(lambda at: at.day - 1),
    # Sunday is 0.
    "getDayOfWeek": _reader(lambda at: at.isoweekday() % 7),
    "getDayOfYear": _reader(lambda at: at.timetuple().tm_yday - 1),
    "getHours": _reader(lambda at: at.hour),
    "getMinutes": _reader(lambda at: at.minute),
    "getSeconds": _reader(lambda at: at.second),
    "getMilliseconds": _milliseconds,
}
"""Parts of a timestamp, in UTC or in a time zone."""
SPANS: Final[dict[str, int]] = {
    "getHours": 3_600 * _SECOND,
    "getMinutes": 60 * _SECOND,
    "getSeconds": _SECOND,
    "getMilliseconds": 1_000_000,
}
"""The units of a duration, in nanoseconds."""
