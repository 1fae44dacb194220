# SPDX-License-Identifier: Apache-2.0
"""Conditions that a test waits for, in the words of `kubectl wait --for`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pumice.actors.gateway.columns.json_path import find
from pumice.cluster.api.kind_table import KindTable
from pumice.cluster.api.kinds import Kind
from pumice.config.errors import nearest_names
from pumice.core.objects.metadata import Object, conditions_of
from pumice.errors import InputError

Reached = Callable[[Object | None], bool]
"""Told an object, or None where there is none: whether the condition holds."""
WaitFor = str | Callable[[Object], Any]

FORMS: Final = "create, delete, condition=TYPE[=STATUS], jsonpath={PATH}[=VALUE], or a function of the object"


class NotReachedError(AssertionError):
    """The awaited state did not come."""


def condition(wanted: WaitFor) -> Reached:
    """Return the condition. Raises InputError for a text that is none."""
    if callable(wanted):
        return lambda obj: obj is not None and bool(wanted(obj))
    form, _, rest = wanted.partition("=")
    match form:
        case "create" if not rest:
            return lambda obj: obj is not None
        case "delete" if not rest:
            return lambda obj: obj is None
        case "condition" if rest:
            name, _, status = rest.partition("=")
            return lambda obj: obj is not None and _status_of(obj, name) == (status or "True").lower()
        case "jsonpath" if rest.startswith("{") and "}" in rest:
            path, _, value = rest[1:].rpartition("}")
            return lambda obj: obj is not None and _has_value(obj, path, value)
        case _:
            raise InputError(f"expected {FORMS}, was {wanted!r}", path="for_")


def _status_of(obj: Object, name: str) -> str:
    said = (each.get("status") for each in conditions_of(obj) if str(each.get("type")).lower() == name.lower())
    return str(next(said, "")).lower()


def _has_value(obj: Object, path: str, value: str) -> bool:
    found = find(path, obj)
    if not value:
        return bool(found)
    return [_written(each) for each in found] == [value.removeprefix("=")]


def _written(value: object) -> str:
    """Write a value as kubectl does."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def find_kind(kinds: KindTable, name: str) -> Kind:
    """Return the kind of a name, as kubectl takes it: `pod`, `pods`, `po`, `Pod`, `queues.scheduling.volcano.sh`.
    Without a group the first one counts: `job` is that of Kubernetes, and Volcano's is `vcjob`. Raises InputError.
    """
    wanted, _, group = name.partition(".")
    known: Mapping[str, Kind] = {}
    for row in kinds.rows():
        names = {row.plural, row.singular, row.kind.lower(), *row.short_names}
        if wanted.lower() in names and group in ("", row.group):
            return row
        known = {**known, row.singular: row}
    near = nearest_names(wanted.lower(), known)
    raise InputError(f"no such kind here: {name!r}" + (f"; near: {', '.join(near)}" if near else ""), path="kind")
