"""Lists of conditions, as statuses have them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pumice.core.objects.metadata import Object, format_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# --- Times as Kubernetes writes them.


def timestamp(now: float) -> str:
    """RFC 3339 in UTC, whole seconds, as Kubernetes writes times."""
    return written_second(int(now))


@lru_cache(maxsize=256)
def written_second(seconds: int) -> str:
    """RFC 3339 in UTC, of whole seconds since the epoch."""
    return format_time(seconds)


def micro_timestamp(now: float) -> str:
    """RFC 3339 in UTC to the microsecond, as Kubernetes writes the times of a Lease."""
    seconds, micros = divmod(round(now * 1e6), 1_000_000)
    return f"{written_second(seconds)[:-1]}.{micros:06d}Z"


# ---

# --- Who clients are: whoever got in may do everything.

USER: Final = "pumice:admin"
GROUPS: Final = ("system:masters", "system:authenticated")


# ---


def merge_condition(conditions: Sequence[Object], wanted: Object, at: str) -> list[Object] | None:
    """The list with `wanted` in it; None when it says so already. The time changes only with the status."""
    for index, old in enumerate(conditions):
        if old.get("type") != wanted["type"]:
            continue
        if says(old, wanted):
            return None
        since = old.get("lastTransitionTime", at) if old.get("status") == wanted["status"] else at
        return [*conditions[:index], {**wanted, "lastTransitionTime": since}, *conditions[index + 1 :]]
    return [*conditions, {**wanted, "lastTransitionTime": at}]


def says(old: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether the old condition says what is wanted; what it says beside that does not count."""
    for key, value in wanted.items():  # noqa: SIM110 - asked of every condition, and a generator costs as much again
        if old.get(key, "") != value:
            return False
    return True
