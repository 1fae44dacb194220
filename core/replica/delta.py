"""What changed from one snapshot to the next, column by column.

Arrays differ by cells, lists and dictionaries by the things they hold: snapshots share what did not change, so one that
is the very same object is the same. Columns are called "part.column" ("nodes.idle") or by their own name ("queues").
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

LEFT_OUT = frozenset({"dimensions", "kept", "nodes.memo"})
"""What only saves work, and the names of the resources, which travel by themselves."""

Array = npt.NDArray[Any]


class Whole(NamedTuple):
    """All of it."""

    value: Any


class Cells(NamedTuple):
    """Flat indices into an array of the same shape, and what they hold now."""

    where: npt.NDArray[np.int64]
    values: Array


class Entries(NamedTuple):
    """A list's new length and what changed in it, by place."""

    length: int
    changed: dict[int, Any]


class Keys(NamedTuple):
    """What changed in a dictionary; `order`: of all its keys, None where it follows by itself."""

    removed: list[Any]
    changed: dict[Any, Any]
    order: list[Any] | None


Change = Whole | Cells | Entries | Keys
Delta = dict[str, Change]


def columns_of(snapshot: Any) -> dict[str, Any]:
    """The columns of a snapshot by name."""
    found: dict[str, Any] = {}
    for field in fields(snapshot):
        value = getattr(snapshot, field.name)
        if field.name in LEFT_OUT:
            continue
        if is_dataclass(value) and not isinstance(value, type):
            parts = {f"{field.name}.{part.name}": getattr(value, part.name) for part in fields(value)}
            found.update((name, part) for name, part in parts.items() if name not in LEFT_OUT)
        else:
            found[field.name] = value
    return found


def delta(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> Delta:
    """What makes `after` of `before` (None: of nothing)."""
    if before is None:
        return {name: Whole(value) for name, value in after.items()}
    changes = ((name, _change(before[name], value)) for name, value in after.items())
    return {name: change for name, change in changes if change is not None}


def applied(columns: Mapping[str, Any], changes: Delta) -> dict[str, Any]:
    """The columns with the changes; what is not changed is shared."""
    return {**columns, **{name: _applied(columns.get(name), change) for name, change in changes.items()}}


def _change(before: Any, after: Any) -> Change | None:
    if before is after:
        return None
    for kind, compare in _COMPARE.items():
        if isinstance(after, kind):
            return compare(before, after)
    return Whole(after)


def _cells(before: Array, after: Array) -> Change | None:
    if before.shape != after.shape or before.dtype != after.dtype:
        return Whole(after)
    where = np.flatnonzero(before.ravel() != after.ravel())
    if not len(where):
        return None
    return Cells(where, after.ravel()[where]) if 3 * len(where) < after.size else Whole(after)


def _entries(before: list[Any], after: list[Any]) -> Change | None:
    known = len(before)
    changed = {i: value for i, value in enumerate(after) if i >= known or _differ(before[i], value)}
    return Entries(len(after), changed) if changed or known != len(after) else None


def _keys(before: dict[Any, Any], after: dict[Any, Any]) -> Change | None:
    removed = [key for key in before if key not in after]
    changed = {key: value for key, value in after.items() if key not in before or _differ(before[key], value)}
    follows = [*(key for key in before if key in after), *(key for key in changed if key not in before)]
    order = list(after)
    if not removed and not changed and follows == order:
        return None
    return Keys(removed, changed, None if follows == order else order)


_COMPARE: dict[type[Any], Callable[[Any, Any], Change | None]] = {np.ndarray: _cells, list: _entries, dict: _keys}


def _differ(before: Any, after: Any) -> bool:
    if before is after:
        return False
    return not (isinstance(after, str | int) and type(before) is type(after) and before == after)


def _applied(column: Any, change: Change) -> Any:
    match change:
        case Whole(value):
            return value
        case Cells(where, values):
            array = column.copy()
            array.ravel()[where] = values
            return array
        case Entries(length, changed):
            return _with_entries(column, length, changed)
        case Keys(removed, changed, order):
            found = {key: value for key, value in column.items() if key not in set(removed)} | changed
            return found if order is None else {key: found[key] for key in order}


def _with_entries(column: Iterable[Any], length: int, changed: dict[int, Any]) -> list[Any]:
    found = [*column][:length]
    found += [None] * (length - len(found))
    for place, value in changed.items():
        found[place] = value
    return found
