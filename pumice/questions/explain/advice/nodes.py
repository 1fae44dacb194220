"""Changes about nodes, out of all that filters said against each of them: taints, cordons, labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pumice.core.kube.taints import HARD_EFFECTS, UNSCHEDULABLE_TAINT, tolerated
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.pod import Task
from pumice.questions.explain.advice.changes import Change, ChangeFamily, Edit, Identity, single

if TYPE_CHECKING:
    from pumice.core.session.trail.records import Look
    from pumice.questions.explain.watch import Room

TAINTED, CORDONED, ELSEWHERE = "TaintToleration", "NodeUnschedulable", "NodeAffinity"


@dataclass(frozen=True)
class NodeRefusals:
    """What keeps tasks alike off the nodes. `against`: node -> the names of all filters that refuse it; `waiting`: the
    pods of that template that wait; `grain`: of what all amounts that pods ask for are multiples, by resource.
    """

    task: Task
    waiting: Sequence[str]
    against: dict[str, frozenset[str]]
    room: Room
    nodes: dict[str, Object]
    grain: Mapping[str, int]

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
        yield _on_nodes(1, cordoned, lambda names: f"uncordon {in_brief(names)}", _uncordon)
    yield from _labels(refused)


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


def in_brief(names: Sequence[str]) -> str:
    """ "node n0", or how many nodes and the first of them."""
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
    return lambda names: f"remove taint {text} from {in_brief(names)}"


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

    return _on_nodes(1, names, lambda chosen: f"label {in_brief(chosen)} with {text}", label)


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
