# SPDX-License-Identifier: Apache-2.0
"""Inter-pod affinity terms, read.

Source: kube-scheduler framework types (GetAffinityTerms), `interpodaffinity/plugin.go`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.core.kube.selectors import NOTHING, LabelSelector, SelectorError, label_selector
from pumice.core.objects.metadata import labels_of, section

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from pumice.core.kube.placed import Move, Placed
    from pumice.core.kube.rows import BoolArray, FloatArray
    from pumice.core.objects.metadata import Object
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate

Labels = dict[str, str]
_NO_LABELS: Labels = {}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """One term: pods of these namespaces (named, or selected by their labels) that the selector matches, per value of
    `key`.

    `weight`: of a preferred term, negative for anti-affinity; 0 for a required one.
    """

    key: str
    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector
    weight: int = 0

    def matches(self, namespace: str, labels: Labels, namespace_labels: Labels = _NO_LABELS) -> bool:
        """Return whether the term means a pod of that namespace (and the namespace's labels)."""
        named = namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        return named and self.selector.matches(labels)

    def reach(self) -> frozenset[str] | None:
        """Return the namespaces of the term, None for all. Only for the terms of a pod to be placed, after
        `resolved`.
        """
        return None if self.namespace_selector.matches(_NO_LABELS) else self.namespaces


@dataclass(frozen=True, slots=True)
class PodTerms:
    """The terms of one pod. Preferred ones hold both kinds, anti-affinity with negative weights."""

    affinity: tuple[AffinityTerm, ...] = ()
    anti: tuple[AffinityTerm, ...] = ()
    preferred: tuple[AffinityTerm, ...] = ()


def _term(listed: Object, namespace: str, weight: int = 0) -> AffinityTerm:
    named: list[str] = listed.get("namespaces") or []
    selector: Object | None = listed.get("namespaceSelector")
    return AffinityTerm(
        key=str(listed.get("topologyKey") or ""),
        selector=label_selector(listed.get("labelSelector")),
        # Even an empty selector takes the place of the pod's own namespace (getNamespacesFromPodAffinityTerm).
        namespaces=frozenset(named if named or selector is not None else (namespace,)),
        namespace_selector=label_selector(selector),
        weight=weight,
    )


def _required(affinity: Object, namespace: str) -> tuple[AffinityTerm, ...]:
    listed: list[Object] = affinity.get(_REQUIRED) or []
    return tuple(_term(one, namespace) for one in listed)


def _preferred(affinity: Object, namespace: str, sign: int) -> tuple[AffinityTerm, ...]:
    listed: list[Object] = affinity.get(_PREFERRED) or []
    return tuple(
        _term(section(one, "podAffinityTerm"), namespace, sign * int(one.get("weight") or 0)) for one in listed
    )


def terms_of(template: PodTemplate, namespace: str) -> PodTerms:
    """Return all terms of a pod of that namespace. Raises SelectorError for a selector that is not valid."""
    together, apart = section(template.affinity, "podAffinity"), section(template.affinity, "podAntiAffinity")
    return PodTerms(
        affinity=_required(together, namespace),
        anti=_required(apart, namespace),
        preferred=(*_preferred(together, namespace, 1), *_preferred(apart, namespace, -1)),
    )


def readable_terms_of(template: PodTemplate, namespace: str) -> PodTerms:
    """Return the terms of a running pod: a kind of terms that cannot be read does not count."""
    try:
        return terms_of(template, namespace)
    except SelectorError:
        pass
    found = PodTerms()
    for kind, part in (("affinity", "podAffinity"), ("anti", "podAntiAffinity")):
        try:
            found = replace(found, **{kind: _required(section(template.affinity, part), namespace)})
        except SelectorError:
            continue
    return found


def namespace_labels(objects: Mapping[str, Mapping[str, Object]], namespace: str) -> Labels:
    """Return the labels of a namespace, none when it is not known."""
    known = objects.get("Namespace", {}).get(namespace)
    return labels_of(known) if known else _NO_LABELS


STAYS, ENDS = "namespace-selectors-stay", "namespace-selectors-end"
"""Former rules, under which old journals are replayed (`pumice.config.rules`). The first came before the second, and is
right.
"""


def resolved(
    term: AffinityTerm, objects: Mapping[str, Mapping[str, Object]], fixes: Container[str] = ()
) -> AffinityTerm:
    """Return the term of a pod to be placed, with the selected namespaces added to the named ones.

    Source: kube-scheduler 1.35 `interpodaffinity/plugin.go` (mergeAffinityTermNamespacesIfNotEmpty). It means to drop
    the selector then, but drops that of a copy: one that matches no labels (DoesNotExist, NotIn) reaches all of them.
    """
    selector = term.namespace_selector
    # An empty selector means all namespaces, which `reach` says; an absent one adds none.
    if selector.empty or selector.nothing:
        return term
    found = (name for name in objects.get("Namespace", {}) if selector.matches(namespace_labels(objects, name)))
    ends = ENDS in fixes and STAYS not in fixes
    return replace(term, namespaces=term.namespaces.union(found), namespace_selector=NOTHING if ends else selector)


def fixed_label(term: AffinityTerm) -> tuple[tuple[str, str], ...]:
    """Return labels that a matching pod must have one of; empty when the selector demands no particular value."""
    # One requirement leaves few candidates; `matches` asks for the others.
    for wanted in term.selector.requirements:
        if wanted.operator == "In":
            return tuple((wanted.key, value) for value in dict.fromkeys(wanted.values))
    return ()


# --- Terms of the pods on the nodes
# Source: kube-scheduler `interpodaffinity`. One thing is Volcano's own: it lists the nodes that have a pod with
# affinity (or with required anti-affinity) once, when the session opens, and later looks for such terms on those
# nodes only, at the pods they have by then.


class Holders(NamedTuple):
    """The pods of one template and namespace: their terms, and node row -> how many there are now."""

    terms: PodTerms
    rows: dict[int, int]

    def per_node(self, count: int) -> FloatArray:
        """Return how many there are per node, float64 [count]."""
        found: FloatArray = np.zeros(count)
        found[list(self.rows)] = list(self.rows.values())
        return found


class TermList:
    """Terms with their holders, found by a label that the matched pod must have."""

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str], list[tuple[AffinityTerm, Holders]]] = {}
        self._others: list[tuple[AffinityTerm, Holders]] = []

    def add(self, term: AffinityTerm, holders: Holders) -> None:
        """Take in one term."""
        labels = fixed_label(term)
        for label in labels:
            self._by_label.setdefault(label, []).append((term, holders))
        if not labels:
            self._others.append((term, holders))

    def meaning(self, task: Task, labels_of_namespace: dict[str, str]) -> Iterator[tuple[AffinityTerm, Holders]]:
        """Yield the terms that match this task."""
        # No term comes twice: its labels have one key, of which a pod has one value.
        for label in task.labels.items():
            yield from self._matching(self._by_label.get(label, ()), task, labels_of_namespace)
        yield from self._matching(self._others, task, labels_of_namespace)

    @staticmethod
    def _matching(
        terms: Iterable[tuple[AffinityTerm, Holders]], task: Task, labels_of_namespace: dict[str, str]
    ) -> Iterator[tuple[AffinityTerm, Holders]]:
        for term, holders in terms:
            if term.matches(task.namespace, task.labels, labels_of_namespace):
                yield term, holders


def has_terms(placed: Placed) -> bool:
    """Return whether a pod was on a node, as the session opened, that others are to be near to or apart from."""
    return any(
        template.affinity.get("podAffinity") is not None or template.affinity.get("podAntiAffinity") is not None
        for template in [task.template for task, _, _ in placed.special_at_opening()]
    )


class TermsIndex:
    """The terms of one session. `anti_nodes`, `affinity_nodes` [N]: the nodes listed at the opening."""

    def __init__(self, placed: Placed, objects: Mapping[str, Mapping[str, Object]]) -> None:
        self._placed, self._objects = placed, objects
        self._holders: dict[tuple[int, str], Holders] = {}
        self._anti, self._preferred = TermList(), TermList()
        self._read = 0
        count = placed.nodes.count
        self.anti_nodes: BoolArray = np.zeros(count, dtype=np.bool_)
        self.affinity_nodes: BoolArray = np.zeros(count, dtype=np.bool_)
        self.any_anti = self.any_affinity = False
        for move in placed.special_at_opening():
            holders = self._count(move)
            if holders is not None:
                self.any_affinity = self.affinity_nodes[move[1]] = True
                if holders.terms.anti:
                    self.any_anti = self.anti_nodes[move[1]] = True

    def _count(self, move: Move) -> Holders | None:
        task, row, sign = move
        template, namespace = task.template, task.namespace
        if template.affinity.get("podAffinity") is None and template.affinity.get("podAntiAffinity") is None:
            return None
        # A term may mean the pod's own namespace, so a template's terms differ between namespaces.
        key = (template.number, namespace)
        holders = self._holders.get(key)
        if holders is None:
            holders = self._holders[key] = Holders(readable_terms_of(template, namespace), {})
            for term in holders.terms.anti:
                self._anti.add(term, holders)
            for term in holders.terms.preferred:
                self._preferred.add(term, holders)
        holders.rows[row] = holders.rows.get(row, 0) + sign
        return holders

    def _catch_up(self) -> None:
        log = self._placed.log
        while self._read < len(log):
            self._count(log[self._read])
            self._read += 1

    def anti_terms(self, task: Task) -> list[tuple[AffinityTerm, Holders]]:
        """Return the required anti-affinity terms of pods on the nodes that keep this task away."""
        self._catch_up()
        return list(self._anti.meaning(task, namespace_labels(self._objects, task.namespace)))

    def preferred_terms(self, task: Task) -> list[tuple[AffinityTerm, Holders]]:
        """Return the preferred terms of pods on the nodes that match this task."""
        self._catch_up()
        return list(self._preferred.meaning(task, namespace_labels(self._objects, task.namespace)))
