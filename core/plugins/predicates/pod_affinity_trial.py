"""Inter-pod affinity in a trial: what if these pods were gone from the node, or back.

Source: Volcano `plugins/predicates` (SimulateAddTask, SimulateRemoveTask, SimulatePredicate) and kube-scheduler
`interpodaffinity` (AddPod, RemovePod): PreFilter's counts are moved by hand, then one node is filtered again.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from core.kube.affinity import namespace_labels, readable_terms_of, resolved, terms_of
from core.kube.labels import ABSENT, label_column
from core.kube.pod_index import pod_index
from core.kube.selectors import SelectorError
from core.kube.terms_index import terms_index
from core.plugins.predicates.pod_affinity import APART, TOGETHER, UNWELCOME, in_common

if TYPE_CHECKING:
    from core.kube.affinity import AffinityTerm, PodTerms
    from core.kube.placed import Placed
    from core.kube.rows import FloatArray
    from core.objects.pod import Task
    from core.session.session import Session

NAME: Final = "predicates"
Pair = tuple[str, int]  # topology key, code of its value


def _readable(task: Task) -> PodTerms:
    try:
        return terms_of(task.template, task.namespace)
    except SelectorError:  # PreFilter has refused it already
        return readable_terms_of(task.template, task.namespace)


class AffinityTrial:
    """PreFilter's counts for one task to be placed, per pair of key and value."""

    def __init__(self, session: Session, placed: Placed, task: Task) -> None:
        self._session, self.task = session, task
        terms = _readable(task)
        self._affinity = tuple(resolved(term, session.objects) for term in terms.affinity)
        self._anti = tuple(resolved(term, session.objects) for term in terms.anti)
        self._home = namespace_labels(session.objects, task.namespace)
        self._company: Counter[Pair] = Counter()
        self._enemies: Counter[Pair] = Counter()
        self._hosts: Counter[Pair] = Counter()
        self._count_all(placed)
        self.skipped = not (self._hosts or self._affinity or self._anti)  # PreFilter's Skip

    def copy(self) -> AffinityTrial:
        """Equal counts, to be moved by themselves."""
        twin = copy(self)
        for name in ("_company", "_enemies", "_hosts"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def _count_all(self, placed: Placed) -> None:
        session, pods = self._session, pod_index(placed)
        index = terms_index(placed, session.objects)
        if self._affinity:
            companions = pods.matching(*in_common(self._affinity), terminating=True).counts()
            for term in self._affinity:
                self._count(self._company, term, companions.astype(np.float64))
        for term in self._anti:
            matching = pods.matching(term.reach(), term.selector, terminating=True)
            self._count(self._enemies, term, matching.counts().astype(np.float64))
        for term, holders in index.anti_terms(self.task):
            self._count(self._hosts, term, holders.per_node(session.nodes.count) * index.anti_nodes)

    def _count(self, counter: Counter[Pair], term: AffinityTerm, per_node: FloatArray) -> None:
        codes = label_column(self._session.nodes, term.key).codes
        for row in np.flatnonzero(per_node).tolist():
            if codes[row] != ABSENT:
                counter[term.key, int(codes[row])] += int(per_node[row])

    def _pair(self, term: AffinityTerm, row: int) -> Pair | None:
        code = int(label_column(self._session.nodes, term.key).codes[row])
        return None if code == ABSENT else (term.key, code)

    def move(self, other: Task, row: int, sign: int) -> None:
        """Another pod is put on a node (sign 1) or taken off it (-1)."""
        if self.skipped:
            return
        where, labels = other.namespace, other.labels
        if self._affinity and all(term.matches(where, labels) for term in self._affinity):
            self._shift(self._company, self._affinity, row, sign)
        self._shift(self._enemies, [term for term in self._anti if term.matches(where, labels)], row, sign)
        task = self.task
        theirs = readable_terms_of(other.template, where).anti if other.template.affinity else ()
        meant = [term for term in theirs if term.matches(task.namespace, task.labels, self._home)]
        self._shift(self._hosts, meant, row, sign)

    def _shift(
        self, counter: Counter[Pair], terms: list[AffinityTerm] | tuple[AffinityTerm, ...], row: int, sign: int
    ) -> None:
        for term in terms:
            pair = self._pair(term, row)
            if pair is not None:
                counter[pair] += sign
                if not counter[pair]:
                    del counter[pair]

    def refusal(self, row: int) -> str | None:
        """Why the node refuses the task as the trial stands; None when it does not."""
        if self.skipped:
            return None
        if not self._has_company(row):
            return APART.text
        if any(self._enemies[pair] > 0 for term in self._anti if (pair := self._pair(term, row))):
            return TOGETHER.text
        for (key, code), hosts in self._hosts.items():
            if hosts > 0 and int(label_column(self._session.nodes, key).codes[row]) == code:
                return UNWELCOME.text
        return None

    def _has_company(self, row: int) -> bool:
        pairs = [self._pair(term, row) for term in self._affinity]
        if any(pair is None for pair in pairs):
            return False
        if all(pair is not None and self._company[pair] > 0 for pair in pairs):
            return True
        task = self.task
        return not self._company and all(term.matches(task.namespace, task.labels) for term in self._affinity)


class Trials:
    """The plugin's part in a trial: `state` belongs to the one who tries, the counts are kept in it under the plugin's
    name.
    """

    def __init__(self, session: Session, placed: Placed) -> None:
        self._session, self._placed = session, placed
        self._counted: tuple[int, AffinityTrial] | None = None

    def _trial(self, state: dict[str, Any], preemptor: Task) -> AffinityTrial:
        trial: AffinityTrial | None = state.get(NAME)
        if trial is None:
            trial = state[NAME] = self._as_it_stands(preemptor).copy()
        return trial

    def _as_it_stands(self, preemptor: Task) -> AffinityTrial:
        """The counts before anything is tried: the same for every node, until a pod comes or goes."""
        changes, counted = len(self._session.nodes.touched), self._counted
        if counted is None or counted[0] != changes or counted[1].task is not preemptor:
            counted = self._counted = changes, AffinityTrial(self._session, self._placed, preemptor)
        return counted[1]

    def is_quiet(self, preemptor: Task) -> bool:
        """Whether no affinity concerns the preemptor, so that a trial of it needs no counts."""
        affinity = preemptor.template.affinity
        asks = affinity.get("podAffinity") or affinity.get("podAntiAffinity")
        if not asks and not terms_index(self._placed, self._session.objects).any_anti:
            return True  # nobody needs counting
        return self._as_it_stands(preemptor).skipped

    def add(self, state: dict[str, Any], preemptor: Task, task: Task, node: int) -> str | None:
        """The task is back on the node."""
        self._trial(state, preemptor).move(task, node, 1)
        return None

    def remove(self, state: dict[str, Any], preemptor: Task, task: Task, node: int) -> str | None:
        """The task is gone from the node."""
        self._trial(state, preemptor).move(task, node, -1)
        return None

    def predicate(self, state: dict[str, Any], preemptor: Task, node: int) -> str | None:
        """Whether the node takes the preemptor as the trial stands; a text says why not."""
        return self._trial(state, preemptor).refusal(node)
