"""More nodes like those that there are: what people with an autoscaler, or a budget, would do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pumice.core.objects.metadata import Object, section
from pumice.questions.explain.advice.changes import Change, ChangeFamily, Edit, Identity
from pumice.questions.whatif.changes import node_like

MOST: Final = 64
MOST_SORTS: Final = 3


def about_more_nodes(objects: Mapping[Identity, Object]) -> Iterator[ChangeFamily]:
    """Give a family of changes for each sort of node (by amounts and taints): n more of it."""
    nodes = [obj for who, obj in objects.items() if who[0] == "Node"]
    for model in _sorts(nodes)[:MOST_SORTS]:
        yield ChangeFamily(5, MOST, _more(model, {str(obj["metadata"]["name"]) for obj in nodes}))


def _sorts(nodes: list[Object]) -> list[Object]:
    seen: dict[str, Object] = {}
    for obj in nodes:
        amounts: Any = section(obj, "status").get("allocatable")
        taints: Any = section(obj, "spec").get("taints")
        seen.setdefault(repr((amounts, taints or None)), obj)
    return list(seen.values())


def _more(model: Object, taken: set[str]) -> Callable[[int], Change]:
    name = str(model["metadata"]["name"])

    def of(size: int) -> Change:
        fresh = (made for number in range(len(taken) + size) if (made := f"{name}-more-{number}") not in taken)
        edits = tuple(Edit(("Node", "", next(fresh)), _like(model)) for _ in range(size))
        words = f"{size} more node{'s' * (size > 1)} like {name}"
        return Change(words, edits, amount=float(size))

    return of


def _like(model: Object) -> Callable[[Object], None]:
    def change(node: Object) -> None:
        node |= node_like(model, str(node["metadata"]["name"]))

    return change
