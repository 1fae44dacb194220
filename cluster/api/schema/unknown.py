"""Fields that a kind does not have, as kube-apiserver words them for `fieldValidation`."""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api.schema.plain import is_list, is_map
from pumice.cluster.api.schema.shapes import Shape, field_shape
from pumice.core.objects.metadata import Object

_MOST: Final = 100
_INSIDE: Final = frozenset(("map", "list"))
"""Sorts of what can hold a field that nobody knows."""
Misplaced = tuple[str, Shape]
_DIRECTIVES: Final = ("$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/")


def unknown_fields(obj: Object, shape: Shape, *, patch: bool = False) -> list[str]:
    """`unknown field "spec.tasks[0].foo"` for each, in the order of the object, a hundred at most.

    In a `patch`, nulls (which remove) and the directives of strategic merges are passed over.
    """
    return [f'unknown field "{path}"' for path, _ in misplaced_fields(_without_removals(obj) if patch else obj, shape)]


def misplaced_fields(obj: Object, shape: Shape) -> list[Misplaced]:
    """The unknown fields as paths, each with the shape that has no such field."""
    found: list[Misplaced] = []
    _look(obj, shape, "", found)
    return found


def pruned(value: Any, shape: Shape) -> Any:
    """The value without the fields that its kind does not have, as a server stores it."""
    if is_list(value) and shape.sort == "list":
        item = shape.item()
        return [pruned(each, item) for each in value] if item.sort in _INSIDE else value
    if not is_map(value) or shape.sort != "map":
        return value
    return {
        name: pruned(each, field_shape(shape, name))
        for name, each in value.items()
        if not shape.closed or shape.named(name) is not None or name.startswith(_DIRECTIVES)
    }


def _without_removals(value: Any) -> Any:
    if is_list(value):
        return [_without_removals(each) for each in value]
    if not is_map(value):
        return value
    return {
        name: _without_removals(each)
        for name, each in value.items()
        if each is not None and not name.startswith(_DIRECTIVES)
    }


def _look(value: Any, shape: Shape, path: str, found: list[Misplaced]) -> None:
    if len(found) >= _MOST:
        return
    if is_list(value) and shape.sort == "list":
        item = shape.item()
        if item.sort in _INSIDE:
            for at, each in enumerate(value):
                if each:
                    _look(each, item, f"{path}[{at}]", found)
    elif is_map(value) and shape.sort == "map":
        for name, each in value.items():
            inner = shape.named(name)
            if inner is None and shape.closed:
                if len(found) < _MOST:
                    found.append((_joined(path, name), shape))
            elif each and (inner or shape.item()).sort in _INSIDE:  # most are scalars: no path is made for them
                _look(each, inner or shape.item(), _joined(path, name), found)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
