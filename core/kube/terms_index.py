"""The affinity terms of the pods on the nodes: which of them mean a given pod, and where.

Source: kube-scheduler `interpodaffinity`. One thing is Volcano's own: it lists the nodes that have a pod with affinity
(or with required anti-affinity) once, when the session opens, and later looks for such terms on those nodes only, at
the pods they have by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.core.kube.affinity import AffinityTerm, fixed_label, namespace_labels, readable_terms_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pumice.core.kube.affinity import PodTerms
    from pumice.core.kube.placed import Move, Placed
    from pumice.core.kube.rows import BoolArray, FloatArray
    from pumice.core.objects.metadata import Object
    from pumice.core.objects.pod import Task


class Holders(NamedTuple):
    """The pods of one template and namespace: their terms, and node row -> how many there are now."""

    terms: PodTerms
    rows: dict[int, int]

    def per_node(self, count: int) -> FloatArray:
        """How many there are per node, float64 [count]."""
        found: FloatArray = np.zeros(count)
        found[list(self.rows)] = list(self.rows.values())
        return found


class TermList:
    """Terms with who holds them, found by a label that the pod they mean must have."""

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
        """The terms that match this task."""
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
        """Required anti-affinity terms of pods on the nodes that keep this task away."""
        self._catch_up()
        return list(self._anti.meaning(task, namespace_labels(self._objects, task.namespace)))

    def preferred_terms(self, task: Task) -> list[tuple[AffinityTerm, Holders]]:
        """Preferred terms of pods on the nodes that mean this task."""
        self._catch_up()
        return list(self._preferred.meaning(task, namespace_labels(self._objects, task.namespace)))


def terms_index(placed: Placed, objects: Mapping[str, Mapping[str, Object]]) -> TermsIndex:
    """The one TermsIndex of a session."""
    found: TermsIndex | None = placed.shared.get("terms")
    if found is None:
        found = placed.shared["terms"] = TermsIndex(placed, objects)
    return found
