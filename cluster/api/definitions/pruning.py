# SPDX-License-Identifier: Apache-2.0
"""Pruning and defaulting of an object by its schema before validation: unknown fields go, defaults come."""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api.definitions.structure import EMBEDDED, PRESERVE
from pumice.cluster.api.definitions.work import TooDearError, Work, size_of
from pumice.core.objects.metadata import COMPOUND, Object, is_list, is_mapping, section
from pumice.storage.codec import repack, unpack

_ANYTHING: Final[Object] = {"nullable": True, PRESERVE: True}
_ALWAYS: Final = frozenset(("apiVersion", "kind", "metadata"))


def _copy(value: object) -> Any:
    return unpack(repack(value))


def prune(obj: Object, schema: Object) -> list[str]:
    """Drop fields that the schema does not know from a whole object, and return their paths (`spec.foo`)."""
    dropped: list[str] = []
    _prune(obj, schema, "", dropped, whole=True)
    return dropped


def settle(obj: object, schema: Object, work: Work) -> None:
    """Fill defaults in; a null that the schema does not allow is an absent field. Raises TooDearError."""
    if is_mapping(obj):
        mapping, properties = obj, section(schema, "properties")
        work.spend(1 + len(properties) // 4)
        # before the defaults, as in Kubernetes ("Defaulting and Nullable"): a default then stands in for such a null
        for name in [name for name, value in mapping.items() if value is None]:
            if not _of(name, properties, schema).get("nullable"):
                del mapping[name]
        for name, below in properties.items():
            if name not in mapping and "default" in below:
                work.spend(size_of(below["default"]))
                # a copy for each object, since admission and patches change objects in place
                mapping[name] = _copy(below["default"])
        for name, value in mapping.items():
            if value.__class__ in COMPOUND:
                settle(value, _of(name, properties, schema), work)
    elif is_list(obj):
        items = _items(schema)
        for value in obj:
            if value.__class__ in COMPOUND:
                settle(value, items, work)


def has_defaults(schema: Object) -> bool:
    """Return whether a schema contains a default."""
    waiting: list[Any] = [schema]
    while waiting:
        node: Any = waiting.pop()
        if not is_mapping(node):
            continue
        if "default" in node:
            return True
        waiting += [*section(node, "properties").values(), node.get("items"), node.get("additionalProperties")]
    return False


def as_read(schema: Object, obj: Object) -> Object:
    """Return a stored object with the defaults of today's schema; an object that would cost too much is left as it
    is.
    """
    filled: Object = _copy(obj)
    try:
        settle(filled, schema, Work(filled))
    except TooDearError:
        return obj
    return filled


def _prune(value: object, schema: Object, path: str, dropped: list[str], *, whole: bool = False) -> None:
    if is_mapping(value):
        _prune_mapping(value, schema, path, dropped, whole or bool(schema.get(EMBEDDED)))
    elif is_list(value):
        items = _items(schema)
        for index, each in enumerate(value):
            if each and each.__class__ in COMPOUND:
                _prune(each, items, f"{path}[{index}]", dropped)


def _prune_mapping(value: Object, schema: Object, path: str, dropped: list[str], whole: bool) -> None:
    properties, more = section(schema, "properties"), schema.get("additionalProperties")
    for name in list(value):
        place = f"{path}.{name}" if path else name
        if whole and name in _ALWAYS:
            continue  # metadata has rules of its own
        if name in properties:
            _prune(value[name], properties[name], place, dropped)
        elif is_mapping(more):
            _prune(value[name], more, place, dropped)
        elif not schema.get(PRESERVE) and more is not True:
            del value[name]
            dropped.append(place)


def _items(schema: Object) -> Object:
    """Return the schema of a list's items."""
    return section(schema, "items") or (_ANYTHING if schema.get(PRESERVE) else {})


def _of(name: str, properties: Object, schema: Object) -> Object:
    """Return the schema of a field."""
    found, more = properties.get(name), schema.get("additionalProperties")
    if is_mapping(found):
        return found
    if is_mapping(more):
        return more
    return _ANYTHING if schema.get(PRESERVE) or more is True else {}
