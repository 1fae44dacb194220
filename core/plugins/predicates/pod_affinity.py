"""InterPodAffinity: required affinity and anti-affinity, both ways.

Source: kube-scheduler `interpodaffinity/filtering.go`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.kube.affinity import resolved, terms_of
from core.kube.labels import ABSENT, label_column
from core.kube.pod_index import pod_index
from core.kube.selectors import LabelSelector, SelectorError
from core.kube.terms_index import terms_index
from core.session.points.nodes import ReadsLabelsInPlay
from core.session.points.ready import KeptCheck
from core.session.reasons import Code, FitFailure, Reason

if TYPE_CHECKING:
    from core.kube.affinity import AffinityTerm, PodTerms
    from core.kube.labels import LabelColumn
    from core.kube.placed import Placed
    from core.kube.pod_index import Matching
    from core.kube.rows import BoolArray, FloatArray
    from core.objects.pod import Task
    from core.session.reasons import IntArray
    from core.session.session import Session

NAME = "InterPodAffinity"
APART = Reason(NAME, Code.UNRESOLVABLE, "node(s) didn't match pod affinity rules")
TOGETHER = Reason(NAME, Code.UNSCHEDULABLE, "node(s) didn't match pod anti-affinity rules")
UNWELCOME = Reason(NAME, Code.UNSCHEDULABLE, "node(s) didn't satisfy existing pods anti-affinity rules")


def domains_with(column: LabelColumn, per_node: FloatArray) -> BoolArray:
    """Which values of the key have a counted pod on any of their nodes, shape [values + 1].

    The last (no label) has none.
    """
    found = np.zeros(len(column.values) + 1, dtype=np.bool_)
    found[column.codes[per_node > 0]] = True
    found[-1] = False
    return found


def in_common(terms: tuple[AffinityTerm, ...]) -> tuple[frozenset[str] | None, LabelSelector]:
    """One question for pods that match every term: the namespaces all look into, and all requirements together."""
    reach: frozenset[str] | None = None
    for term in terms:
        own = term.reach()
        reach = own if reach is None else reach if own is None else reach & own
    requirements = tuple(wanted for term in terms for wanted in term.selector.requirements)
    return reach, LabelSelector(requirements, nothing=any(term.selector.nothing for term in terms))


@dataclass(frozen=True, slots=True)
class Own:
    """The task's own terms as columns and questions."""

    affinity: tuple[LabelColumn, ...]
    companions: Matching | None  # pods that match all affinity terms
    matches_itself: bool
    anti: tuple[tuple[LabelColumn, Matching], ...]


NO_TERMS = Own((), None, matches_itself=False, anti=())


class AffinityCheck(KeptCheck):
    """Asks, in this order: is who it needs there, is who it avoids not there, does nobody there avoid it."""

    def __init__(self, session: Session, placed: Placed, task: Task, own: Own) -> None:
        self._nodes, self._placed, self._task, self._own = session.nodes, placed, task, own
        self._index = terms_index(placed, session.objects)
        intern = session.reasons.intern
        self._apart, self._together, self._unwelcome = intern(APART), intern(TOGETHER), intern(UNWELCOME)
        self._asked_at = -1
        self._codes: IntArray = np.zeros(session.nodes.count, dtype=np.int32)

    def _without_companions(self) -> BoolArray:
        """Mask [N]: an affinity term has nobody in the node's domain, or the node is in none.

        Where nobody at all is there, the first of a series may start anywhere, if it would be company for itself.
        """
        labelled, company = (np.ones(self._nodes.count, dtype=np.bool_) for _ in range(2))
        anybody = False
        assert self._own.companions is not None
        per_node = self._own.companions.counts().astype(np.float64)
        for column in self._own.affinity:
            found = domains_with(column, per_node)
            anybody = anybody or bool(found.any())
            labelled &= column.codes != ABSENT
            company &= found[column.codes]
        return ~labelled if not anybody and self._own.matches_itself else ~(labelled & company)

    def _with_enemies(self) -> BoolArray:
        mask = np.zeros(self._nodes.count, dtype=np.bool_)
        for column, matching in self._own.anti:
            mask |= domains_with(column, matching.counts().astype(np.float64))[column.codes]
        return mask

    def _with_hosts_that_mind(self) -> BoolArray:
        mask = np.zeros(self._nodes.count, dtype=np.bool_)
        per_key: dict[str, FloatArray] = {}
        for term, holders in self._index.anti_terms(self._task):
            there = holders.per_node(self._nodes.count) * self._index.anti_nodes
            per_key[term.key] = per_key[term.key] + there if term.key in per_key else there
        for key, there in per_key.items():
            column = label_column(self._nodes, key)
            mask |= domains_with(column, there)[column.codes]
        return mask

    def current(self) -> IntArray:
        """Reason number per node, int32 [N], as of now."""
        if self._asked_at != len(self._placed.log):
            self._asked_at = len(self._placed.log)
            codes: IntArray = np.zeros(self._nodes.count, dtype=np.int32)
            if self._index.any_anti:
                codes[self._with_hosts_that_mind()] = self._unwelcome
            if self._own.anti:
                codes[self._with_enemies()] = self._together
            if self._own.affinity:
                codes[self._without_companions()] = self._apart
            self._codes = codes
        return self._codes


class PodAffinityFilter(ReadsLabelsInPlay):
    """The filter."""

    name = NAME

    def __init__(self, placed: Placed) -> None:
        self._placed = placed

    def prepare(self, session: Session, task: Task) -> AffinityCheck | None:
        """None when neither the task nor anybody there has required terms.

        Raises FitFailure for a selector that is no valid one.
        """
        affinity, own = task.template.affinity, NO_TERMS
        if affinity and (affinity.get("podAffinity") or affinity.get("podAntiAffinity")):
            own = self._own(session, task)
        if not own.affinity and not own.anti and not terms_index(self._placed, session.objects).any_anti:
            return None
        self.in_play = True
        return AffinityCheck(session, self._placed, task, own)

    def _own(self, session: Session, task: Task) -> Own:
        terms = self._terms(task)
        affinity = tuple(resolved(term, session.objects) for term in terms.affinity)
        anti = tuple(resolved(term, session.objects) for term in terms.anti)
        if not affinity and not anti:
            return NO_TERMS
        nodes, pods = session.nodes, pod_index(self._placed)
        return Own(
            affinity=tuple(label_column(nodes, term.key) for term in affinity),
            companions=pods.matching(*in_common(affinity), terminating=True) if affinity else None,
            matches_itself=all(term.matches(task.namespace, task.labels) for term in affinity),
            anti=tuple(
                (label_column(nodes, term.key), pods.matching(term.reach(), term.selector, terminating=True))
                for term in anti
            ),
        )

    @staticmethod
    def _terms(task: Task) -> PodTerms:
        try:
            return terms_of(task.template, task.namespace)
        except SelectorError as error:
            text = f"plugin {NAME} pre-predicates failed parsing pod: {error}"
            raise FitFailure(Reason(NAME, Code.ERROR, text)) from error
