"""Parts of objects as words: names, label selectors, container lists, quantities, access modes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, Final, cast

from pumice.actors.gateway.tables.column import NONE
from pumice.cluster.api.fields import rows
from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.quantity import quantity_of

_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def name_of(obj: Object) -> str:
    """metadata.name."""
    return cast("str", section(obj, "metadata").get("name", ""))


def spec_of(obj: Object) -> dict[str, Any]:
    """spec, empty when absent."""
    return section(obj, "spec")


def status_of(obj: Object) -> dict[str, Any]:
    """status, empty when absent."""
    return section(obj, "status")


def deleted(obj: Object) -> bool:
    """Whether the object is on its way out."""
    return bool(section(obj, "metadata").get("deletionTimestamp"))


def count(holder: Mapping[str, Any], name: str, default: int = 0) -> int:
    """An integer field; `default` when absent or null."""
    value = holder.get(name)
    return default if value is None else int(value)


def or_none(value: object) -> str:
    """The text, or `<none>`."""
    return str(value) if value else NONE


def label_map(labels: Mapping[str, Any] | None) -> str:
    """`a=1,b=2` in the order of keys, or `<none>`."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def label_selector(selector: Mapping[str, Any] | None) -> str:
    """A LabelSelector as kubectl writes it (`a=1,b in (x,y),!c`), empty when it selects everything or is absent."""
    chosen = dict(selector or {})
    terms = [(key, f"{key}={value}") for key, value in text_map(chosen.get("matchLabels")).items()]
    terms += [(str(rule["key"]), _requirement(rule)) for rule in rows(chosen, "matchExpressions")]
    return ",".join(term for _, term in sorted(terms, key=itemgetter(0)))


def _requirement(rule: Mapping[str, Any]) -> str:
    key, operator = rule["key"], rule.get("operator")
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
            return "<error>"


def containers(template: Mapping[str, Any]) -> list[str]:
    """The cells Containers and Images of a pod template."""
    listed = rows(section(section(dict(template), "template"), "spec"), "containers")
    return [",".join(str(one.get(field, "")) for one in listed) for field in ("name", "image")]


def quantity(value: object) -> str:
    """A quantity in canonical form; `0` when absent, the text itself when it is none."""
    if value is None:
        return "0"
    try:
        return quantity_of(value).canonical()
    except QuantityError:
        return str(value)


def access_modes(modes: Iterable[str] | None) -> str:
    """`RWO,RWX`, always in the same order."""
    given = set(modes or ())
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in given)


def some(parts: list[str], most: int) -> str:
    """The first few, and how many more there are."""
    shown = ",".join(parts[:most])
    return f"{shown} + {len(parts) - most} more..." if len(parts) > most else shown
