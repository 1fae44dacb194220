"""Where the elements of a merged list go: those of the patch in the patch's order, the server's own between them."""

from __future__ import annotations

from typing import Any

from pumice.cluster.api.patches.errors import PatchError
from pumice.cluster.api.schema.plain import is_map


def in_order(merged: list[Any], order: list[Any], server: list[Any], key: str) -> list[Any]:
    """The merged list: elements that stand in `order` in its order, others as they stand in `server`.

    Both runs are merged; an element of the server's goes first only when it stood before the other one there.
    """
    place, before = positions(order, key), positions(server, key)
    names = [(name_of(each, key), each) for each in merged]
    told = sorted((pair for pair in names if pair[0] in place), key=lambda pair: place[pair[0]])
    others = [pair for pair in names if pair[0] not in place]
    result: list[Any] = []
    i = j = 0
    while i < len(others) and j < len(told):
        left, right = before.get(others[i][0]), before.get(told[j][0])
        first = left is not None and right is not None and left < right
        result.append((others[i] if first else told[j])[1])
        i, j = (i + 1, j) if first else (i, j + 1)
    return result + [each for _, each in told[j:]] + [each for _, each in others[i:]]


def check_order(change: list[Any], order: list[Any], key: str) -> None:
    """Check that the patch's elements stand in the order that its directive states. Raises PatchError."""
    names = iter([name_of(each, key) for each in order])
    for each in change if order else []:
        directed = is_map(each) and "$patch" in each
        if not directed and not any(name == name_of(each, key) for name in names):
            raise PatchError(f"The order in patch list:\n{change}\n doesn't match $setElementOrder list:\n{order}\n")


def positions(items: list[Any], key: str) -> dict[Any, int]:
    """Where each element stands first, by its name."""
    found: dict[Any, int] = {}
    for at, each in enumerate(items):
        if not (is_map(each) and "$patch" in each):
            found.setdefault(name_of(each, key), at)
    return found


def name_of(value: Any, key: str) -> Any:
    """What an element is known by: its merge key's value, or itself in a list of scalars. Raises PatchError."""
    if not key:
        name = value
    elif not is_map(value):
        raise PatchError(f"expected a map with the merge key {key!r} in the list, found {value!r}")
    elif key not in value:
        raise PatchError(f"map: {value} does not contain declared merge key: {key}")
    else:
        name = value[key]
    if isinstance(name, dict | list):
        raise PatchError("list element types are not identical")
    return name
