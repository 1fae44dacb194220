"""Ages as kubectl shows them: two or three significant figures (apimachinery's HumanDuration)."""

from __future__ import annotations

from typing import Final

from pumice.actors.gateway.tables.column import UNKNOWN
from pumice.core.objects.metadata import Object, parse_time, section

_MINUTE: Final = 60
_HOUR: Final = 3600
_YEAR_HOURS: Final = 24 * 365


def human_duration(seconds: float) -> str:
    """`119s`, `2m`, `9m59s`, `179m`, `7h5m`, `47h`, `7d23h`, `729d`, `2y3d`, `8y`; a little below zero is `0s`."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * _MINUTE:
        return _pair(whole // _MINUTE, "m", whole % _MINUTE, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _pair(whole // _HOUR, "h", whole // _MINUTE % 60, "m")
    return _long(whole // _HOUR)


def _long(hours: int) -> str:
    if hours < 48:
        return f"{hours}h"
    if hours < 8 * 24:
        return _pair(hours // 24, "d", hours % 24, "h")
    if hours < 2 * _YEAR_HOURS:
        return f"{hours // 24}d"
    if hours < 8 * _YEAR_HOURS:
        return _pair(hours // _YEAR_HOURS, "y", hours // 24 % 365, "d")
    return f"{hours // _YEAR_HOURS}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def since(moment: object, now: float) -> str:
    """Time from an RFC 3339 moment until now; `<unknown>` without one, `<invalid>` when it is no time."""
    if not moment:
        return UNKNOWN
    try:
        started = parse_time(str(moment))
    except ValueError:
        return "<invalid>"
    return human_duration(now - started)


def age(obj: Object, now: float) -> str:
    """Time since the object was created."""
    return since(section(obj, "metadata").get("creationTimestamp"), now)
