"""InterPodAffinity over all nodes: required affinity and anti-affinity, both ways (`pod_affinity_rule`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.kube.affinity import terms_of
from pumice.core.kube.selectors import SelectorError
from pumice.core.kube.terms_index import terms_index
from pumice.core.plugins.predicates.pod_affinity_rule import (
    NAME,
    NO_TERMS,
    REASONS,
    AffinityCounts,
    OwnTerms,
    own_terms,
)
from pumice.core.session.points.nodes import ReadsLabelsInPlay
from pumice.core.session.points.ready import KeptCheck
from pumice.core.session.reasons import Code, FitFailure, Reason

if TYPE_CHECKING:
    from pumice.core.kube.affinity import PodTerms
    from pumice.core.kube.placed import Placed
    from pumice.core.objects.pod import Task
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.session import Session

EVERYWHERE: Final = slice(None)
FEW: Final = 8
"""Moves of pods that cost less, one by one, than counting all pods anew."""


class AffinityCheck(KeptCheck):
    """The rule, looked at again whenever pods were put on a node or taken off it.

    A few of them move the counts one by one: to count all anew each time costs `bench spread` 7 % more.
    """

    def __init__(self, session: Session, placed: Placed, task: Task, own: OwnTerms) -> None:
        self._session, self._placed, self._task, self._own = session, placed, task, own
        self._index = terms_index(placed, session.objects)
        self._numbers = [session.reasons.intern(reason) for reason in REASONS]
        self._counts: AffinityCounts | None = None
        self._read = 0  # of the log
        self._codes: IntArray = np.zeros(session.nodes.count, dtype=np.int32)

    def current(self) -> IntArray:
        """Reason number per node, int32 [N], as of now."""
        counts, read, log = self._counts, self._read, self._placed.log
        if counts is None or len(log) - read > FEW:
            counts = self._counts = AffinityCounts(self._session, self._placed, self._task, self._own)
        elif read == len(log):
            return self._codes
        else:
            for other, row, sign in log[read:]:
                counts.move(other, row, sign, is_host=bool(self._index.anti_nodes[row]))
        self._read = len(log)
        codes: IntArray = np.zeros(self._session.nodes.count, dtype=np.int32)
        for place, mask in reversed([*counts.refusals(EVERYWHERE)]):  # the first one stands
            codes[mask] = self._numbers[place]
        self._codes = codes
        return codes


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
            own = own_terms(session, self._placed, task, self._terms(task))
        if own is NO_TERMS and not terms_index(self._placed, session.objects).any_anti:
            return None
        self.in_play = True
        return AffinityCheck(session, self._placed, task, own)

    @staticmethod
    def _terms(task: Task) -> PodTerms:
        try:
            return terms_of(task.template, task.namespace)
        except SelectorError as error:
            text = f"plugin {NAME} pre-predicates failed parsing pod: {error}"
            raise FitFailure(Reason(NAME, Code.ERROR, text)) from error
