# SPDX-License-Identifier: Apache-2.0
"""PodTopologySpread: hard constraints. Source: kube-scheduler `podtopologyspread/filtering.go`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.kube.pod_index import PodIndex
from pumice.core.kube.selectors import SelectorError
from pumice.core.kube.spread import HARD, constraints_of
from pumice.core.session.points.nodes import Reads, Volatility
from pumice.core.session.points.rules import ColumnRule
from pumice.core.session.reasons import Code, FitFailure, Reason

if TYPE_CHECKING:
    from pumice.core.kube.placed import Placed
    from pumice.core.kube.spread import SpreadConstraint
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.points.nodes import Rows
    from pumice.core.session.points.rules import Check
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.session import Session

NAME = "PodTopologySpread"
SKEWED = Reason(NAME, Code.UNSCHEDULABLE, "node(s) didn't match pod topology spread constraints")
UNLABELLED = Reason(NAME, Code.UNRESOLVABLE, f"{SKEWED.text} (missing required label)")


class SpreadCodes:
    """Answers of hard constraints. For each constraint:

    pods of the node's domain + (1 if the pod counts itself) - fewest of any domain <= maxSkew.
    """

    def __init__(self, constraints: list[SpreadConstraint], task: Task, skewed: int, unlabelled: int) -> None:
        self._constraints = constraints
        self._itself = [int(c.selector.matches(task.labels)) for c in constraints]
        self._domains = [c.domains() for c in constraints]
        self._skewed, self._unlabelled = skewed, unlabelled

    def _by_domain(self, i: int) -> IntArray:
        """Return the reason number per value of the key; the last is for nodes without the label (code -1)."""
        constraint, domains = self._constraints[i], self._domains[i]
        counts = constraint.per_domain()
        enough = domains.any() and np.count_nonzero(domains) >= constraint.min_domains
        # With fewer domains than minDomains the fewest counts as 0 (filtering.go).
        fewest = counts[domains].min() if enough else 0.0
        codes = np.empty(len(counts) + 1, dtype=np.int32)
        codes[:-1] = np.where(counts + (self._itself[i] - fewest) > constraint.max_skew, self._skewed, 0)
        codes[-1] = self._unlabelled
        return codes

    def __call__(self, rows: Rows, /) -> IntArray:
        """Return the reason number per row, int32 [len(rows)]; the first constraint that fails decides."""
        codes: IntArray | None = None
        for i, constraint in enumerate(self._constraints):
            answer = self._by_domain(i)[constraint.column.codes[rows]]
            codes = answer if codes is None else np.where(codes == 0, answer, codes)
        assert codes is not None
        return codes


def constrains(template: PodTemplate) -> bool:
    """Return whether the task has hard constraints: tasks without any share an answer."""
    return any(c.get("whenUnsatisfiable") == HARD for c in template.spread_constraints)


class TopologySpreadFilter:
    """The filter."""

    name = NAME
    reads = Reads(labels=True, concerns=constrains, needs_pre_filter=True)

    def __init__(self, placed: Placed) -> None:
        self._placed = placed

    def prepare(self, session: Session, task: Task) -> Check | None:
        """Return the answers; None for a task without hard constraints. Raises FitFailure for a selector that is not
        valid.
        """
        if not constrains(task.template):
            return None
        try:
            constraints = constraints_of(task, HARD, session.nodes, self._placed.reader(PodIndex))
        except SelectorError as error:
            text = f"plugin {NAME} pre-predicates failed get constraints from pod: {error}"
            raise FitFailure(Reason(NAME, Code.ERROR, text)) from error
        intern = session.reasons.intern
        codes = SpreadCodes(constraints, task, intern(SKEWED), intern(UNLABELLED))
        return ColumnRule(codes, Volatility.GLOBAL, follow=self._placed.version)
