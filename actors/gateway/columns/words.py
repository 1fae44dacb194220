# SPDX-License-Identifier: Apache-2.0
"""Parts of objects as kubectl words them: fields by path, ages, selectors, container lists, quantities."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, Final

from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import Object, parse_time, rows, section, text_map
from pumice.core.quantity import quantity_of

Cell = Callable[[Object, float], Any]
"""One cell of an object at a moment (seconds since the epoch)."""

Cells = Callable[[Object, float], list[Any]]
"""Cells of an object that are read in one go."""

NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"

_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_MINUTE: Final = 60
_HOUR: Final = 3600
_YEAR_HOURS: Final = 24 * 365


# --- Fields by path
# A path is dotted, `spec.nodeName`; what is absent or null on the way is empty.


def at(path: str, read: Callable[[Any], Any] = lambda value: value) -> Cell:
    """Return the cell that reads the field at a path; `read` gets None for an absent one."""
    *way, last = path.split(".")

    def cell(obj: Object, _now: float) -> Any:
        for name in way:
            obj = obj.get(name) or {}
        return read(obj.get(last))

    return cell


def filled(path: str, empty: str = "") -> Cell:
    """Return the cell that shows a field as it is, or `empty`."""
    return at(path, lambda value: value or empty)


def unset(path: str, absent: str = UNSET) -> Cell:
    """Return the cell that shows a field as text; `absent` is the word for null."""
    return at(path, lambda value: absent if value is None else str(value))


def counted(path: str, default: int = 0) -> Cell:
    """Return the cell that shows an integer field; `default` when absent or null."""
    return at(path, lambda value: default if value is None else int(value))


def length(path: str) -> Cell:
    """Return the cell that counts the items of a field."""
    return at(path, lambda value: len(value or ()))


def amount(path: str) -> Cell:
    """Return the cell that shows a quantity in canonical form."""
    return at(path, quantity)


def labels(path: str) -> Cell:
    """Return the cell that shows a map of labels."""
    return at(path, label_map)


def selector(path: str, empty: str = NONE) -> Cell:
    """Return the cell that shows a LabelSelector, or `empty`."""
    return at(path, lambda value: label_selector(value) or empty)


def ratio(part: str, whole: str, default: int) -> Cell:
    """Return the cell that shows two integer fields as `part/whole`; `default` is the whole's."""
    of, total = counted(part), counted(whole, default)
    return lambda obj, now: f"{of(obj, now)}/{total(obj, now)}"


# --- Words for values


def name_of(obj: Object, _now: float = 0.0) -> str:
    """Return metadata.name."""
    name: str = section(obj, "metadata").get("name", "")
    return name


def spec_of(obj: Object) -> Object:
    """Return spec, empty when absent."""
    return section(obj, "spec")


def status_of(obj: Object) -> Object:
    """Return status, empty when absent."""
    return section(obj, "status")


def deleted(obj: Object) -> bool:
    """Return whether the object is being deleted."""
    return bool(section(obj, "metadata").get("deletionTimestamp"))


def count(holder: Object, name: str, default: int = 0) -> int:
    """Return an integer field; `default` when absent or null."""
    value = holder.get(name)
    return default if value is None else int(value)


def or_none(value: object) -> str:
    """Return the text, or `<none>`."""
    return str(value) if value else NONE


def label_map(given: Object | None) -> str:
    """Return `a=1,b=2` in the order of keys, or `<none>`."""
    return ",".join(f"{key}={value}" for key, value in sorted((given or {}).items())) or NONE


def label_selector(given: Object | None) -> str:
    """Return a LabelSelector as kubectl writes it (`a=1,b in (x,y),!c`), empty when it selects everything or is
    absent."""
    chosen = dict(given or {})
    terms = [(key, f"{key}={value}") for key, value in text_map(chosen.get("matchLabels")).items()]
    terms += [(str(rule["key"]), _requirement(rule)) for rule in rows(chosen, "matchExpressions")]
    # A Go selector keeps its requirements sorted by key (apimachinery's labels.ByKey).
    return ",".join(term for _, term in sorted(terms, key=itemgetter(0)))


def _requirement(rule: Object) -> str:
    key, operator = rule["key"], rule.get("operator")
    # Sorted: labels.Requirement prints its values so.
    values = ",".join(sorted(rule.get("values") or []))
    match operator:
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return str(key)
        case "DoesNotExist":
            return f"!{key}"
        case _:
            # FormatLabelSelector's word for a selector that cannot be read.
            return "<error>"


def quantity(value: object) -> str:
    """Return a quantity in canonical form; `0` when absent, the text itself when it is not valid."""
    if value is None:
        return "0"
    try:
        return quantity_of(value).canonical()
    except QuantityError:
        return str(value)


def access_modes(modes: Iterable[str] | None) -> str:
    """Return access modes like `RWO,RWX`, always in the same order."""
    given = set(modes or ())
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in given)


def some(parts: list[str], most: int, between: str = ",") -> str:
    """Return the first few, and how many more there are."""
    shown = between.join(parts[:most])
    return f"{shown} + {len(parts) - most} more..." if len(parts) > most else shown


# --- Ages: two or three significant figures (apimachinery's HumanDuration)


def human_duration(seconds: float) -> str:
    """Return a duration like `119s`, `2m`, `9m59s`, `179m`, `7h5m`, `47h`, `7d23h`, `729d`, `2y3d`, `8y`; a little
    below zero is `0s`.
    """
    whole = int(seconds)
    # Less than two seconds ahead is taken for clocks that differ, not for an error (`duration.HumanDuration`).
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
    """Return the time from an RFC 3339 moment until now; `<unknown>` without one, `<invalid>` for another text."""
    if not moment:
        return UNKNOWN
    try:
        started = parse_time(str(moment))
    except ValueError:
        return "<invalid>"
    return human_duration(now - started)


def age(obj: Object, now: float) -> str:
    """Return the time since the object was created."""
    return since(section(obj, "metadata").get("creationTimestamp"), now)
