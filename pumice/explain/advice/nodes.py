"""Changes about nodes, out of all that filters said against each of them: taints, cordons, labels, and more room."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from core.kube.taints import HARD_EFFECTS, UNSCHEDULABLE_TAINT, tolerated
from core.objects.metadata import section
from core.objects.pod import Task
from core.quantity import quantity_of
from pumice.explain.advice.changes import Change, ChangeFamily, Edit, Identity, Object, single
from pumice.units import amount

if TYPE_CHECKING:
    from core.session.trail.records import Look
    from pumice.explain.watch import Room

TAINTED, CORDONED, ELSEWHERE, SHORT = "TaintToleration", "NodeUnschedulable", "NodeAffinity", "resources"
PODS: Final = "pods"
OTHERS: Final = 4
"""So many times the room is tried that the pods themselves need: others that wait may take it first."""
KINDS: Final = 3
"""So many kinds of nodes are tried by themselves, of those that lack different resources."""


@dataclass(frozen=True)
class NodeRefusals:
    """What keeps tasks alike off the nodes. `against`: node -> the names of all filters that refuse it; `waiting`: the
    pods of that template that wait.
    """

    task: Task
    waiting: Sequence[str]
    against: dict[str, frozenset[str]]
    room: Room
    nodes: dict[str, Object]

    def by(self, plugin: str) -> list[str]:
        """The nodes that it refuses, those with the fewest other refusals first."""
        found = [name for name, who in self.against.items() if plugin in who and name in self.nodes]
        return sorted(found, key=lambda name: (len(self.against[name]), name))


def against_each(look: Look) -> dict[str, frozenset[str]]:
    """Node -> every filter that refuses it now; empty for a node that fits, or that was only refused before."""
    found: list[set[str]] = [set() for _ in look.names]
    for answer in look.every:
        for row in np.flatnonzero(answer.codes).tolist():
            found[row].update(reason.plugin for reason in look.table.reasons(int(answer.codes[row])))
    return {name: frozenset(who) for name, who in zip(look.names, found, strict=True)}


def about_nodes(refused: NodeRefusals) -> Iterator[ChangeFamily]:
    """All there are."""
    yield from _taints(refused)
    if cordoned := refused.by(CORDONED):
        yield _on_nodes(1, cordoned, lambda names: f"uncordon {_named(names)}", _uncordon)
    yield from _labels(refused)
    yield from _more_room(refused)


def on_pods(rank: int, words: str, pods: Sequence[str], change: Callable[[Object], None]) -> ChangeFamily:
    """One change of the template that pods are alike in."""
    return single(rank, words, *[Edit(pod_called(pod), change) for pod in pods])


def pod_called(key: str) -> Identity:
    """The pod "namespace/name"."""
    namespace, _, name = key.partition("/")
    return "Pod", namespace, name


def _on_nodes(
    rank: int, names: Sequence[str], words: Callable[[Sequence[str]], str], change: Callable[[Object], None]
) -> ChangeFamily:
    def of(size: int) -> Change:
        chosen = names[:size]
        return Change(words(chosen), tuple(Edit(("Node", "", name), change) for name in chosen))

    return ChangeFamily(rank, len(names), of)


def _named(names: Sequence[str]) -> str:
    return (
        f"node {names[0]}"
        if len(names) == 1
        else f"{len(names)} nodes ({', '.join(names[:3])}{', …' * (len(names) > 3)})"
    )


# --- taints


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
    return lambda names: f"remove taint {text} from {_named(names)}"


def _tolerating(toleration: dict[str, str]) -> Callable[[Object], None]:
    def change(pod: Object) -> None:
        pod["spec"]["tolerations"] = [*(pod["spec"].get("tolerations") or ()), toleration]

    return change


def _without_taint(key: str, value: str, effect: str) -> Callable[[Object], None]:
    def change(node: Object) -> None:
        def is_it(taint: dict[str, Any]) -> bool:
            return (taint.get("key"), str(taint.get("value") or ""), taint.get("effect")) == (key, value, effect)

        node["spec"]["taints"] = [taint for taint in node["spec"].get("taints") or () if not is_it(taint)]

    return change


def _uncordon(node: Object) -> None:
    spec = node["spec"]
    spec["unschedulable"] = False
    spec["taints"] = [one for one in spec.get("taints") or () if one.get("key") != UNSCHEDULABLE_TAINT["key"]]


# --- labels


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

    return _on_nodes(1, names, lambda chosen: f"label {_named(chosen)} with {text}", label)


def _asked_of_nodes(affinity: dict[str, Any]) -> dict[str, str]:
    """Labels that the first term of a required node affinity asks for, where it is only of In and Exists."""
    required = section(section(affinity, "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution")
    terms: list[dict[str, Any]] = required.get("nodeSelectorTerms") or [{}]
    term = terms[0]
    asked: list[dict[str, Any]] = term.get("matchExpressions") or []
    if term.get("matchFields") or any(each.get("operator") not in ("In", "Exists") for each in asked):
        return {}
    return {str(each["key"]): str(next(iter(each.get("values") or ("",)))) for each in asked}


def _without(field: str) -> Callable[[Object], None]:
    return lambda pod: pod["spec"].pop(field, None)


def _without_node_affinity(pod: Object) -> None:
    affinity = dict(pod["spec"].get("affinity") or {})
    affinity.pop("nodeAffinity", None)
    pod["spec"]["affinity"] = affinity


# --- room


def _more_room(refused: NodeRefusals) -> Iterator[ChangeFamily]:
    """So much more on each of some nodes that one more task fits there; and on one node, so much that all do. Whole
    tasks at a time: who takes it first is not known.
    """
    waiting = len(refused.waiting)
    lacks = {name: refused.room.lacks(refused.task, name, 1) for name in _with_room_only(refused)}
    names = sorted((name for name, lack in lacks.items() if lack), key=lambda name: _hardness(lacks[name]))
    if not names:
        return
    most = waiting * OTHERS
    yield ChangeFamily(3, most, _spread(refused, names))
    for alike in _by_what_lacks(names, lacks):
        yield ChangeFamily(3, most, _spread(refused, alike))
    first = names[0]
    if len(names) > 1:

        def all_on_one(size: int) -> Change:
            more = refused.room.lacks(refused.task, first, size)
            return _more_on(refused, [first], more)

        yield ChangeFamily(4, most, all_on_one)


def _by_what_lacks(names: Sequence[str], lacks: dict[str, dict[str, float]]) -> list[list[str]]:
    """Nodes that lack the same resources; none when all do."""
    found: dict[frozenset[str], list[str]] = defaultdict(list)
    for name in names:
        found[frozenset(lacks[name])].append(name)
    return list(found.values())[:KINDS] if len(found) > 1 else []


def _spread(refused: NodeRefusals, names: Sequence[str]) -> Callable[[int], Change]:
    """So many of the tasks more, on as many of these nodes."""

    def of(size: int) -> Change:
        per_node = max(1, ceil(size / len(names)))
        chosen, more = names[:size], dict[str, float]()
        for name in chosen:
            for resource, value in refused.room.lacks(refused.task, name, per_node).items():
                more[resource] = max(value, more.get(resource, 0.0))
        return _more_on(refused, chosen, more)

    return of


def _more_on(refused: NodeRefusals, names: Sequence[str], more: dict[str, float]) -> Change:
    asked = {refused.room.resources[place]: value for place, value in refused.task.template.items}
    part = sum(value / asked[resource] for resource, value in more.items()) * len(names) / len(refused.waiting)
    each = "" if len(names) == 1 else "each of "
    return Change(f"{_amounts(more)} more on {each}{_named(names)}", _adding(names, more), amount=part)


def _with_room_only(refused: NodeRefusals) -> list[str]:
    return [name for name, who in refused.against.items() if who <= {SHORT} and name in refused.nodes]


def _hardness(lack: dict[str, float]) -> tuple[int, float]:
    return len(lack), sum(lack.values())


def _amounts(more: dict[str, float]) -> str:
    return " and ".join(amount(resource, value) for resource, value in sorted(more.items()))


def _adding(names: Sequence[str], more: dict[str, float]) -> tuple[Edit, ...]:
    def change(node: Object) -> None:
        status = node.setdefault("status", {})
        for part in ("allocatable", "capacity"):
            listed = status[part] = dict(status.get(part) or {})
            for resource, value in more.items():
                text = f"{ceil(value)}" if resource in ("memory", PODS) else f"{ceil(value)}m"
                listed[resource] = quantity_of(listed.get(resource, "0")).plus(quantity_of(text)).canonical()

    return tuple(Edit(("Node", "", name), change) for name in names)
