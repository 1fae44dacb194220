# SPDX-License-Identifier: Apache-2.0
"""Topology spread constraints, read and resolved to columns.

Source: kube-scheduler `podtopologyspread` (common.go, filtering.go).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pumice.core.kube.node_selector import ABSENT, label_column, rows_required
from pumice.core.kube.selectors import label_selector
from pumice.core.kube.taints import rows_untolerated
from pumice.core.objects.metadata import Object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.kube.node_selector import LabelColumn
    from pumice.core.kube.pod_index import Matching, PodIndex
    from pumice.core.kube.rows import BoolArray, FloatArray, NodeRows
    from pumice.core.kube.selectors import LabelSelector
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """One constraint of one task. `eligible` [N]: nodes whose pods count; `matching`: the pods that count on them."""

    key: str
    max_skew: int
    min_domains: int
    selector: LabelSelector
    column: LabelColumn
    eligible: BoolArray
    matching: Matching | None

    def per_node(self) -> FloatArray:
        """Return matching pods per node [N]."""
        if self.matching is None:
            return np.zeros(len(self.eligible))
        return self.matching.counts().astype(np.float64)

    def per_domain(self) -> FloatArray:
        """Return matching pods on eligible nodes per value of the key, shape [values]."""
        if self.matching is None:
            return np.zeros(len(self.column.values))
        counts, eligible = self.matching.counts(), self.eligible
        # No code is ABSENT, which bincount refuses: eligible nodes have all the keys (`nodes_with_all`).
        codes, weights = self.column.codes[eligible], counts[eligible]
        return np.bincount(codes, weights=weights, minlength=len(self.column.values)).astype(np.float64)

    def domains(self) -> BoolArray:
        """Return which values of the key any eligible node has, shape [values]."""
        found = np.zeros(len(self.column.values), dtype=np.bool_)
        found[self.column.codes[self.eligible]] = True
        return found


@lru_cache(1024)
def _listed(template: PodTemplate, action: str) -> tuple[tuple[Object, LabelSelector], ...]:
    """Return the constraints of one whenUnsatisfiable with their selectors: read once for all tries of all tasks alike.
    Raises SelectorError.
    """
    chosen = [c for c in template.spread_constraints if c.get("whenUnsatisfiable") == action]
    return tuple([(each, label_selector(each.get("labelSelector"))) for each in chosen])


def _selector(listed: Object, selector: LabelSelector, task: Task) -> LabelSelector:
    keys: list[str] = listed.get("matchLabelKeys") or []
    return selector.restricted_to({key: task.labels[key] for key in keys if key in task.labels}) if keys else selector


def _eligible(nodes: NodeRows, task: Task, listed: Object, complete: BoolArray) -> BoolArray:
    mask = complete.copy()
    if (listed.get("nodeAffinityPolicy") or "Honor") == "Honor":
        selected = rows_required(nodes, task.template)
        if selected is not None:
            mask &= selected
    if listed.get("nodeTaintsPolicy") == "Honor":
        tainted = rows_untolerated(nodes, task.template.tolerations)
        if tainted is not None:
            mask &= ~tainted
    return mask


def nodes_with_all(nodes: NodeRows, keys: Sequence[str]) -> BoolArray:
    """Return mask [N] of the nodes that have every label."""
    mask = np.ones(nodes.count, dtype=np.bool_)
    for key in keys:
        mask &= label_column(nodes, key).codes != ABSENT
    return mask


def constraints_of(task: Task, action: str, nodes: NodeRows, index: PodIndex) -> list[SpreadConstraint]:
    """Return the task's constraints of one whenUnsatisfiable. Raises SelectorError.

    A node counts for a constraint when it has the labels of all constraints of that kind and the policies let it:
    affinity is honoured unless it says Ignore, taints are ignored unless it says Honor. A selector that restricts
    nothing counts no pods (as Kubernetes has it).
    """
    chosen = _listed(task.template, action)
    complete = nodes_with_all(nodes, [str(c.get("topologyKey") or "") for c, _ in chosen])
    found: list[SpreadConstraint] = []
    for listed, read in chosen:
        key, selector = str(listed.get("topologyKey") or ""), _selector(listed, read, task)
        eligible = _eligible(nodes, task, listed, complete)
        namespaces = frozenset((task.namespace,))
        matching = None if selector.empty else index.matching(namespaces, selector, terminating=False)
        least = listed.get("minDomains")
        found.append(
            SpreadConstraint(
                key=key,
                max_skew=int(listed.get("maxSkew") or 0),
                min_domains=1 if least is None else int(least),
                selector=selector,
                column=label_column(nodes, key),
                eligible=eligible,
                matching=matching,
            )
        )
    return found
