# SPDX-License-Identifier: Apache-2.0
"""Changes about nodes, from all filters' refusals of each: taints, cordons, labels, and more room."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.kube.taints import HARD_EFFECTS, UNSCHEDULABLE_TAINT, tolerated
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.pod import Task
from pumice.core.plugins import OF_DEVICES
from pumice.core.quantity import quantity_of
from pumice.questions.explain.advice.changes import Change, ChangeFamily, Edit, Identity, single
from pumice.units import amount

if TYPE_CHECKING:
    from pumice.core.session.trail.records import Look
    from pumice.questions.explain.watch import Room

TAINTED, CORDONED, ELSEWHERE = "TaintToleration", "NodeUnschedulable", "NodeAffinity"


@dataclass(frozen=True)
class NodeRefusals:
    """Refusals that keep equal tasks off the nodes. `against`: node -> the names of all filters that refuse it;
    `waiting`: the waiting pods of that template; `grain`: all requested amounts are multiples of it, by resource.
    """

    task: Task
    waiting: Sequence[str]
    against: dict[str, frozenset[str]]
    room: Room
    nodes: dict[str, Object]
    grain: Mapping[str, int]

    def by(self, plugin: str) -> list[str]:
        """Return the nodes that it refuses, those with the fewest other refusals first."""
        found = [name for name, who in self.against.items() if plugin in who and name in self.nodes]
        return sorted(found, key=lambda name: (len(self.against[name]), name))


def against_each(look: Look) -> dict[str, frozenset[str]]:
    """Return node -> every filter that refuses it now; empty for a node that fits, or that was only refused before."""
    found: list[set[str]] = [set() for _ in look.names]
    for answer in look.every:
        for row in np.flatnonzero(answer.codes).tolist():
            found[row].update(reason.plugin for reason in look.table.reasons(int(answer.codes[row])))
    return {name: frozenset(who) for name, who in zip(look.names, found, strict=True)}


def about_nodes(refused: NodeRefusals) -> Iterator[ChangeFamily]:
    """Yield all changes about nodes."""
    yield from _taints(refused)
    if cordoned := refused.by(CORDONED):
        yield _on_nodes(1, cordoned, lambda names: f"uncordon {in_brief(names)}", _uncordon)
    yield from _labels(refused)


def on_pods(rank: int, words: str, pods: Sequence[str], change: Callable[[Object], None]) -> ChangeFamily:
    """Return one change of the template that pods are alike in."""
    return single(rank, words, *[Edit(pod_called(pod), change) for pod in pods])


def pod_called(key: str) -> Identity:
    """Return the pod "namespace/name"."""
    namespace, _, name = key.partition("/")
    return "Pod", namespace, name


def _on_nodes(
    rank: int, names: Sequence[str], words: Callable[[Sequence[str]], str], change: Callable[[Object], None]
) -> ChangeFamily:
    def of(size: int) -> Change:
        chosen = names[:size]
        return Change(words(chosen), tuple(Edit(("Node", "", name), change) for name in chosen))

    return ChangeFamily(rank, len(names), of)


def in_brief(names: Sequence[str]) -> str:
    """Return "node n0", or the number of nodes and the first of them."""
    return (
        f"node {names[0]}"
        if len(names) == 1
        else f"{len(names)} nodes ({', '.join(names[:3])}{', …' * (len(names) > 3)})"
    )


# --- Taints


def _taints(refused: NodeRefusals) -> Iterator[ChangeFamily]:
    tolerations = refused.task.template.tolerations
    bearers: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for name in refused.by(TAINTED):
        for taint in refused.nodes[name].get("spec", {}).get("taints") or ():
            if taint.get("effect") in HARD_EFFECTS and not tolerated(tolerations, taint):
                bearers[taint["key"], str(taint.get("value") or ""), taint["effect"]].append(name)
    for (key, value, effect), names in bearers.items():
        text = f"{key}{'=' if value else ''}{value}:{effect}"
        toleration = {"key": key, "operator": "Equal", "value": value, "effect": effect}
        yield on_pods(0, f"tolerate taint {text}", refused.waiting, _tolerating(toleration))
        yield _on_nodes(1, names, _removing(text), _without_taint(key, value, effect))


def _removing(text: str) -> Callable[[Sequence[str]], str]:
    return lambda names: f"remove taint {text} from {in_brief(names)}"


def _tolerating(toleration: dict[str, str]) -> Callable[[Object], None]:
    def change(pod: Object) -> None:
        pod["spec"]["tolerations"] = [*(pod["spec"].get("tolerations") or ()), toleration]

    return change


def _without_taint(key: str, value: str, effect: str) -> Callable[[Object], None]:
    def change(node: Object) -> None:
        def is_it(taint: Object) -> bool:
            return (taint.get("key"), str(taint.get("value") or ""), taint.get("effect")) == (key, value, effect)

        node["spec"]["taints"] = [taint for taint in node["spec"].get("taints") or () if not is_it(taint)]

    return change


def _uncordon(node: Object) -> None:
    spec = node["spec"]
    spec["unschedulable"] = False
    spec["taints"] = [one for one in spec.get("taints") or () if one.get("key") != UNSCHEDULABLE_TAINT["key"]]


# --- Labels


def _labels(refused: NodeRefusals) -> Iterator[ChangeFamily]:
    names, template = refused.by(ELSEWHERE), refused.task.template
    if not names:
        return
    if selector := template.node_selector:
        text = ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
        yield _labelled(names, dict(selector))
        yield on_pods(1, f"no node selector ({text})", refused.waiting, _without("nodeSelector"))
    if template.affinity.get("nodeAffinity"):
        if wanted := _asked_of_nodes(template.affinity):
            yield _labelled(names, wanted)
        yield on_pods(1, "no required node affinity", refused.waiting, _without_node_affinity)


def _labelled(names: Sequence[str], labels: dict[str, str]) -> ChangeFamily:
    text = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))

    def label(node: Object) -> None:
        node["metadata"]["labels"] = {**(node["metadata"].get("labels") or {}), **labels}

    return _on_nodes(1, names, lambda chosen: f"label {in_brief(chosen)} with {text}", label)


def _asked_of_nodes(affinity: Object) -> dict[str, str]:
    """Return labels that the first term of a required node affinity requests, where it contains only In and Exists."""
    required = section(section(affinity, "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution")
    terms: list[Object] = required.get("nodeSelectorTerms") or [{}]
    term = terms[0]
    asked: list[Object] = term.get("matchExpressions") or []
    if term.get("matchFields") or any(each.get("operator") not in ("In", "Exists") for each in asked):
        return {}
    return {str(each["key"]): str(next(iter(each.get("values") or ("",)))) for each in asked}


def _without(field: str) -> Callable[[Object], None]:
    return lambda pod: pod["spec"].pop(field, None)


def _without_node_affinity(pod: Object) -> None:
    affinity = dict(pod["spec"].get("affinity") or {})
    affinity.pop("nodeAffinity", None)
    pod["spec"]["affinity"] = affinity


# --- Room on nodes

SHORT: Final = "resources"
PODS: Final = "pods"
OTHERS: Final = 4
"""Multiples of the pods' own need that are tried: others that wait may take it first."""
KINDS: Final = 3
"""Number of kinds of nodes that are tried by themselves, of those that lack different resources."""
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
        """Return the addition as a sentence, with its edits of the nodes."""
        refused, names = self.refused, self.names
        asked = {refused.room.resources[place]: value for place, value in refused.task.template.items}
        part = sum(value / asked[name] for name, value in self.much.items()) * len(names) / len(refused.waiting)
        told = " and ".join(amount(name, value) for name, value in sorted(self.much.items()))
        each = "" if len(names) == 1 else "each of "
        return Change(f"{told} more on {each}{in_brief(names)}", _adding(names, self.much), amount=part)

    def less(self, resources: Sequence[str]) -> ChangeFamily | None:
        """Return a smaller addition: less on the first node by the smallest amount that matters, then on the others."""
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
        """Return changes that make room for so many more tasks, on as many of the nodes; instead of that, on fewer
        nodes with room for more on each."""
        most = len(self.refused.waiting) * OTHERS
        return ChangeFamily(3, most, lambda size: self._of(size).change, instead=self._otherwise)

    def _of(self, size: int) -> Addition:
        return self.on(min(size, len(self.names)), ceil(size / len(self.names)))

    def on(self, nodes: int, tasks: int) -> Addition:
        """Return room for so many tasks on each of so many of the nodes, the nearest to it first."""
        chosen, much = self.names[:nodes], dict[str, float]()
        for name in chosen:
            for resource, value in self.refused.room.lacks(self.refused.task, name, tasks).items():
                much[resource] = max(value, much.get(resource, 0.0))
        return Addition(self.refused, chosen, much)

    def _otherwise(self, size: int) -> ChangeFamily | None:
        """Return smaller forms for at least as many tasks, and this one as the greatest."""
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
    """Yield additions for whole tasks, since the first taker is unknown: on each of some nodes room for one more task;
    and on one node room for all. Then less, as far as that helps as well. Nodes that lack cards come alone, since for
    some kinds a node has as many as its status says.
    """
    against = {name: who for name, who in refused.against.items() if name in refused.nodes}
    yield from _of_nodes(refused, [name for name, who in against.items() if who <= {SHORT}])
    yield from _of_nodes(
        refused,
        [name for name, who in against.items() if SHORT in who and len(who) == 2 and who - {SHORT} <= OF_DEVICES],
    )


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
    """Return nodes that lack the same resources; none when all do."""
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
