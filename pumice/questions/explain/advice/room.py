"""Changes that add room to nodes: how much more of what, on how many of them, the least in all that does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from pumice.core.objects.metadata import Object
from pumice.core.quantity import quantity_of
from pumice.questions.explain.advice.changes import Change, ChangeFamily, Edit
from pumice.questions.explain.advice.nodes import NodeRefusals, in_brief
from pumice.units import amount

SHORT: Final = "resources"
CARDS: Final = "deviceshare"
PODS: Final = "pods"
OTHERS: Final = 4
"""So many times the room is tried that the pods themselves need: others that wait may take it first."""
KINDS: Final = 3
"""So many kinds of nodes are tried by themselves, of those that lack different resources."""
WIDEST: Final = 64
"""Over so many nodes at most the room is spread otherwise than one task on each."""
STEPS: Final = 64
"""In so many parts at most the room on a node is made smaller."""


@dataclass(frozen=True)
class Addition:
    """So `much` (resource -> amount in the scheduler's units) more on each of these nodes."""

    refused: NodeRefusals
    names: Sequence[str]
    much: dict[str, float]

    @property
    def change(self) -> Change:
        """The addition in words, and what it does to the nodes."""
        refused, names = self.refused, self.names
        asked = {refused.room.resources[place]: value for place, value in refused.task.template.items}
        part = sum(value / asked[name] for name, value in self.much.items()) * len(names) / len(refused.waiting)
        told = " and ".join(amount(name, value) for name, value in sorted(self.much.items()))
        each = "" if len(names) == 1 else "each of "
        return Change(f"{told} more on {each}{in_brief(names)}", _adding(names, self.much), amount=part)

    def less(self, resources: Sequence[str]) -> ChangeFamily | None:
        """Less of the first of these by as little as anything could depend on, then of the others."""
        if not resources:
            return None
        name, *others = resources
        most = self.much[name]
        grain = max(1, self.refused.grain.get(name, 1))
        grain *= ceil(most / grain / STEPS)
        sizes = ceil(most / grain)
        if sizes < 2:
            return self.less(others)

        def of(size: int) -> Addition:
            return replace(self, much={**self.much, name: most - (sizes - size) * grain})

        def instead(size: int) -> ChangeFamily | None:
            return of(size).less(others)

        return ChangeFamily(0, sizes, lambda size: of(size).change, instead=instead, near=True)


@dataclass(frozen=True)
class SpreadAddition:
    """Room for more tasks on some of these nodes, each of them with as much."""

    refused: NodeRefusals
    names: Sequence[str]

    @property
    def family(self) -> ChangeFamily:
        """So many tasks more, on as many of the nodes; instead of that, on fewer nodes with room for more on each."""
        most = len(self.refused.waiting) * OTHERS
        return ChangeFamily(3, most, lambda size: self._of(size).change, instead=self._otherwise)

    def _of(self, size: int) -> Addition:
        return self.on(min(size, len(self.names)), ceil(size / len(self.names)))

    def on(self, nodes: int, tasks: int) -> Addition:
        """Room for so many tasks on each of so many of the nodes, the nearest to it first."""
        chosen, much = self.names[:nodes], dict[str, float]()
        for name in chosen:
            for resource, value in self.refused.room.lacks(self.refused.task, name, tasks).items():
                much[resource] = max(value, much.get(resource, 0.0))
        return Addition(self.refused, chosen, much)

    def _otherwise(self, size: int) -> ChangeFamily | None:
        """Other forms of at least as many tasks that are less in all, and this one as the greatest."""
        here = self._of(size)
        tasks = len(here.names) * ceil(size / len(self.names))
        forms = {
            (nodes, each)
            for nodes in range(1, min(len(self.names), size, WIDEST) + 1)
            for each in range(ceil(size / nodes), ceil(tasks / nodes) + 1)
        }
        found = [self.on(*form) for form in forms]
        found = [other for other in found if other.change.amount < here.change.amount]
        found.sort(key=lambda other: (other.change.amount, -len(other.names)))
        found.append(here)
        return ChangeFamily(
            0,
            len(found),
            lambda place: found[place - 1].change,
            instead=lambda place: found[place - 1].less(sorted(found[place - 1].much)),
        )


def more_room(refused: NodeRefusals) -> Iterator[ChangeFamily]:
    """Whole tasks at a time, for who takes it first is not known: so much on each of some nodes that one more task fits
    there; and on one node, so much that all do. Then less, as far as that does as well. Nodes that lack cards by
    themselves, for of some kinds a node has as many as its status says.
    """
    against = {name: who for name, who in refused.against.items() if name in refused.nodes}
    yield from _of_nodes(refused, [name for name, who in against.items() if who <= {SHORT}])
    yield from _of_nodes(refused, [name for name, who in against.items() if who == frozenset((SHORT, CARDS))])


def _of_nodes(refused: NodeRefusals, refusing: Sequence[str]) -> Iterator[ChangeFamily]:
    lacks = {name: refused.room.lacks(refused.task, name, 1) for name in refusing}
    names = sorted((name for name, lack in lacks.items() if lack), key=lambda name: _hardness(lacks[name]))
    if not names:
        return
    yield SpreadAddition(refused, names).family
    for alike in _by_what_lacks(names, lacks):
        yield SpreadAddition(refused, alike).family
    if len(names) > 1:
        yield replace(SpreadAddition(refused, names[:1]).family, rank=4)


def _by_what_lacks(names: Sequence[str], lacks: dict[str, dict[str, float]]) -> list[list[str]]:
    """Nodes that lack the same resources; none when all do."""
    found: dict[frozenset[str], list[str]] = defaultdict(list)
    for name in names:
        found[frozenset(lacks[name])].append(name)
    return list(found.values())[:KINDS] if len(found) > 1 else []


def _hardness(lack: dict[str, float]) -> tuple[int, float]:
    return len(lack), sum(lack.values())


def _adding(names: Sequence[str], more: dict[str, float]) -> tuple[Edit, ...]:
    def change(node: Object) -> None:
        status = node.setdefault("status", {})
        for part in ("allocatable", "capacity"):
            listed = status[part] = dict(status.get(part) or {})
            for resource, value in more.items():
                text = f"{ceil(value)}" if resource in ("memory", PODS) else f"{ceil(value)}m"
                listed[resource] = quantity_of(listed.get(resource, "0")).plus(quantity_of(text)).canonical()

    return tuple(Edit(("Node", "", name), change) for name in names)
