# SPDX-License-Identifier: Apache-2.0
"""PodTopologySpread: soft constraints. Source: kube-scheduler `podtopologyspread/scoring.go`.

Constraints that a pod does not name itself (the system's defaults) need the Service or controller that selects the pod;
Pumice has neither, so they never apply.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

import numpy as np

from pumice.core.kube.pod_index import PodIndex
from pumice.core.kube.scores import MAX_NODE_SCORE
from pumice.core.kube.selectors import SelectorError
from pumice.core.kube.spread import HOSTNAME, SOFT, constraints_of, nodes_with_all
from pumice.core.session.points.nodes import Reads
from pumice.core.session.points.rules import of_candidates

if TYPE_CHECKING:
    import numpy.typing as npt

    from pumice.core.kube.placed import Placed
    from pumice.core.kube.spread import SpreadConstraint
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.points.rules import Score
    from pumice.core.session.session import Session


def rounded(values: FloatArray) -> FloatArray:
    """Round numbers that are not negative like Go's math.Round: halves go up."""
    whole = np.floor(values)
    return whole + (values - whole >= 0.5)


class TopologySpreadScores:
    """Scores nodes: the fewer matching pods a node's domains have, the better.

    What a domain weighs depends on the candidates as a set.
    """

    def __init__(self, session: Session, constraints: list[SpreadConstraint], weight: float) -> None:
        self._constraints, self._weight = constraints, weight
        self._complete = nodes_with_all(session.nodes, [c.key for c in constraints])

    def __call__(self, rows: npt.NDArray[np.intp]) -> FloatArray:
        """Return the weighted scores of the candidates, float64 [len(rows)]."""
        scored = self._complete[rows]
        finished: FloatArray = np.zeros(len(rows))
        if scored.any():
            scores = self._scores(rows[scored])
            lowest, highest = scores.min(), scores.max()
            if highest == 0.0:
                finished[scored] = MAX_NODE_SCORE * self._weight
            else:
                finished[scored] = np.floor(MAX_NODE_SCORE * (highest + lowest - scores) / highest) * self._weight
        return finished

    def _scores(self, rows: npt.NDArray[np.intp]) -> FloatArray:
        """Return the scores of the candidates that have all labels, whole numbers [len(rows)]."""
        total: FloatArray = np.zeros(len(rows))
        for constraint in self._constraints:
            codes = constraint.column.codes[rows]
            # Each node is a domain of its own (scoring.go counts hostname by node).
            if constraint.key == HOSTNAME:
                counts, size = constraint.per_node()[rows], len(rows)
            else:
                counts, size = constraint.per_domain()[codes], len(np.unique(codes))
            # scoring.go weighs a key by the logarithm of the number of its domains (topologyNormalizingWeight).
            total += counts * log(size + 2) + (constraint.max_skew - 1)
        return rounded(total)


def prefers(template: PodTemplate) -> bool:
    """Return whether the task has soft constraints: tasks without any share an answer."""
    return any(c.get("whenUnsatisfiable") == SOFT for c in template.spread_constraints)


class TopologySpreadScorer:
    """Prefers domains with few pods of the same kind."""

    name = "PodTopologySpread"
    reads = Reads(labels=True, concerns=prefers)

    def __init__(self, placed: Placed, weight: int) -> None:
        self._placed, self._weight = placed, float(weight)

    def prepare(self, session: Session, task: Task) -> Score | None:
        """Return the scores; None for a task without readable soft constraints."""
        if not prefers(task.template):
            return None
        try:
            constraints = constraints_of(task, SOFT, session.nodes, self._placed.reader(PodIndex))
        except SelectorError:  # admission refuses such constraints; Volcano would give up scoring the task altogether
            return None
        return of_candidates(session.nodes.count, TopologySpreadScores(session, constraints, self._weight))
