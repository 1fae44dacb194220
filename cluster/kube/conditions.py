"""Lists of conditions, as statuses have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.core.objects.metadata import Object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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
