# SPDX-License-Identifier: Apache-2.0
"""Taints and tolerations. Nodes share few distinct sets of taints, so each set is matched once, for all its rows.

Sources: component-helpers `scheduling/corev1` (TolerationsTolerateTaint, FindMatchingUntoleratedTaint), api `core/v1`
(ToleratesTaint).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pumice.core.objects.metadata import Object
from pumice.core.state.derived import derived
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.kube.rows import BoolArray, CodeArray, FloatArray, NodeRows
    from pumice.core.state.sources import NodeSpecs

Taint = Object
Toleration = Object

HARD_EFFECTS = ("NoSchedule", "NoExecute")
SOFT_EFFECT = "PreferNoSchedule"
UNSCHEDULABLE_TAINT: Taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether this toleration covers the taint: an empty effect or key covers all.

    Exists ignores the value, Equal (default) does not.
    """
    effect, key, operator = toleration.get("effect"), toleration.get("key"), toleration.get("operator") or "Equal"
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    if operator == "Exists":
        return True
    return operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or "")


def tolerated(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    """Return whether any of the tolerations covers the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


@dataclass(frozen=True, slots=True)
class TaintSets:
    """`sets[codes[row]]` are the taints of a node; `any_hard`, `any_soft`: whether any node has such a taint."""

    codes: CodeArray
    sets: tuple[tuple[Taint, ...], ...]
    any_hard: bool
    any_soft: bool


@derived(NODES)
def taint_sets(nodes: NodeSpecs) -> TaintSets:
    """Return the nodes grouped by their taints."""
    index: dict[tuple[tuple[str, str, str], ...], int] = {}
    sets: list[tuple[Taint, ...]] = []
    codes = np.empty(nodes.count, dtype=np.int32)
    for row, spec in enumerate(nodes.specs):
        # A dictionary has no hash: its three fields stand for a taint.
        content = tuple((t.get("key") or "", t.get("value") or "", t.get("effect") or "") for t in spec.taints)
        if content not in index:
            index[content] = len(sets)
            sets.append(spec.taints)
        codes[row] = index[content]
    effects = {taint.get("effect") for taints in sets for taint in taints}
    return TaintSets(codes, tuple(sets), not effects.isdisjoint(HARD_EFFECTS), SOFT_EFFECT in effects)


def rows_untolerated(nodes: NodeRows, tolerations: Sequence[Toleration]) -> BoolArray | None:
    """Return mask [N] of the nodes with a NoSchedule or NoExecute taint that is not tolerated.

    None when no node has such a taint.
    """
    taints = taint_sets(nodes)
    if not taints.any_hard:
        return None
    verdicts = np.array(
        [
            any(t.get("effect") in HARD_EFFECTS and not tolerated(tolerations, t) for t in taint_set)
            for taint_set in taints.sets
        ],
        dtype=np.bool_,
    )
    return verdicts[taints.codes]


def count_soft_untolerated(nodes: NodeRows, tolerations: Sequence[Toleration]) -> FloatArray | None:
    """Return the number of PreferNoSchedule taints per node [N] that no toleration (of that or of no effect) covers.

    None when it is 0 everywhere.
    """
    taints = taint_sets(nodes)
    if not taints.any_soft:
        return None
    soft = [t for t in tolerations if not t.get("effect") or t.get("effect") == SOFT_EFFECT]
    counts = np.array(
        [
            sum(t.get("effect") == SOFT_EFFECT and not tolerated(soft, t) for t in taint_set)
            for taint_set in taints.sets
        ],
        dtype=np.float64,
    )
    return counts[taints.codes] if counts.any() else None
