"""InterPodAffinity: preferred affinity and anti-affinity, both ways.

Source: kube-scheduler `interpodaffinity/scoring.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.kube.affinity import resolved, terms_of
from pumice.core.kube.labels import label_column
from pumice.core.kube.pod_index import pod_index
from pumice.core.kube.selectors import SelectorError
from pumice.core.kube.terms_index import terms_index
from pumice.core.session.points.nodes import ReadsLabelsInPlay
from pumice.core.session.points.ready import KeptScore

if TYPE_CHECKING:
    from pumice.core.kube.affinity import AffinityTerm
    from pumice.core.kube.labels import LabelColumn
    from pumice.core.kube.placed import Placed
    from pumice.core.kube.pod_index import Matching
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.session import Session


def spread_over_domains(column: LabelColumn, per_node: FloatArray) -> FloatArray:
    """Sum over the nodes of the same value of the key, per node [N]; 0 where the node lacks it."""
    labelled = column.codes >= 0
    sums: FloatArray = np.zeros(len(column.values) + 1)  # the last is for nodes without the label
    np.add.at(sums, column.codes[labelled], per_node[labelled])
    return sums[column.codes]


class PodAffinityScore(KeptScore):
    """Weights of the terms that hold in a node's domains: the task's own, and those of the pods there that mean it."""

    def __init__(
        self, session: Session, placed: Placed, task: Task, own: list[tuple[AffinityTerm, Matching]], weight: float
    ) -> None:
        self._nodes, self._placed, self._task, self._own, self._weight = session.nodes, placed, task, own, weight
        self._index = terms_index(placed, session.objects)
        self._asked_at = -1
        self._raw: FloatArray = np.zeros(session.nodes.count)

    def current(self) -> FloatArray:
        """Raw score per node, float64 [N], as of now: the sum of weights."""
        if self._asked_at != len(self._placed.log):
            self._asked_at = len(self._placed.log)
            per_key: dict[str, FloatArray] = {}
            for term, matching in self._own:
                self._add(per_key, term, matching.counts().astype(np.float64))
            for term, holders in self._index.preferred_terms(self._task):
                there = holders.per_node(self._nodes.count)
                self._add(per_key, term, there if self._own else there * self._index.affinity_nodes)
            raw: FloatArray = np.zeros(self._nodes.count)
            for key, there in per_key.items():
                raw += spread_over_domains(label_column(self._nodes, key), there)
            self._raw = raw
        return self._raw

    def _add(self, per_key: dict[str, FloatArray], term: AffinityTerm, there: FloatArray) -> None:
        weighted = there * float(term.weight)
        per_key[term.key] = per_key[term.key] + weighted if term.key in per_key else weighted

    def finish(self, raw: FloatArray, /) -> FloatArray:
        """0 for the lowest candidate, 100 for the highest, truncated, times the weight; 0 when all are equal."""
        lowest = raw.min() if raw.size else 0.0
        spread = raw.max() - lowest if raw.size else 0.0
        if spread <= 0.0:
            return np.zeros(raw.shape)
        return np.floor(100.0 * ((raw - lowest) / spread)) * self._weight


class PodAffinityScorer(ReadsLabelsInPlay):
    """Prefers nodes near who the task likes, and who likes it."""

    name = "InterPodAffinity"

    def __init__(self, placed: Placed, weight: int) -> None:
        self._placed, self._weight = placed, float(weight)

    def prepare(self, session: Session, task: Task) -> PodAffinityScore | None:
        """None when neither the task nor anybody there prefers anything that can be read."""
        own: list[tuple[AffinityTerm, Matching]] = []
        affinity = task.template.affinity
        if affinity and (affinity.get("podAffinity") or affinity.get("podAntiAffinity")):
            for term in self._preferred(session, task):
                question = pod_index(self._placed).matching(term.reach(), term.selector, terminating=True)
                own.append((term, question))
        if not own and not terms_index(self._placed, session.objects).any_affinity:
            return None
        self.in_play = True
        return PodAffinityScore(session, self._placed, task, own, self._weight)

    @staticmethod
    def _preferred(session: Session, task: Task) -> list[AffinityTerm]:
        try:
            terms = terms_of(task.template, task.namespace).preferred
        except SelectorError:  # admission refuses such terms; Volcano would give up scoring the task altogether
            return []
        return [resolved(term, session.objects) for term in terms]
