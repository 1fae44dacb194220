"""NodeAffinity: the weights of the preferred terms a node matches.

Source: kube-scheduler `nodeaffinity` (Score, NormalizeScore).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from pumice.core.kube.node_selector import rows_in_term
from pumice.core.kube.selectors import SelectorError
from pumice.core.objects.metadata import section
from pumice.core.plugins.nodeorder.static import StaticScore
from pumice.core.session.points.nodes import Reads
from pumice.core.state.derived import Like, derived
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.kube.rows import NodeRows
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.session import Session
    from pumice.core.state.sources import NodeSpecs

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def preferred_terms(template: PodTemplate) -> Sequence[dict[str, Any]]:
    """The preferred node affinity terms: {"weight", "preference"}."""
    terms: list[dict[str, Any]] | None = section(template.affinity, "nodeAffinity").get(PREFERRED)
    return terms or []


def preference(nodes: NodeRows, terms: Sequence[dict[str, Any]]) -> FloatArray | None:
    """Sum of the weights of the matching terms [N]; None when no node matches any.

    Raises SelectorError for a term that is no valid one.
    """
    total: FloatArray = np.zeros(nodes.count)
    for term in terms:
        weight = int(term.get("weight") or 0)
        if weight:
            total += weight * rows_in_term(nodes, term.get("preference") or {})
    return total if total.any() else None


@derived(NODES)
def _preference(nodes: NodeSpecs, terms: Like[Sequence[dict[str, Any]]]) -> FloatArray | None:
    try:
        return preference(nodes, terms.subject)
    except SelectorError:  # admission refuses such terms; Volcano would give up scoring the task altogether
        return None


def prefers(template: PodTemplate) -> bool:
    """Tasks that prefer nothing are all the same to the scorer."""
    return bool(preferred_terms(template))


class NodeAffinityScorer:
    """Prefers nodes that match what the pod would like."""

    name = "NodeAffinity"
    reads = Reads(concerns=prefers)

    def __init__(self, weight: int) -> None:
        self._weight = float(weight)

    def prepare(self, session: Session, task: Task) -> StaticScore | None:
        """For the task's template; None when nothing is preferred or nothing matches (then every node scores 0)."""
        terms = preferred_terms(task.template)
        if not terms:
            return None
        raw = _preference(session.nodes, Like(msgspec.json.encode(terms, order="deterministic"), terms))
        return None if raw is None else StaticScore(raw, self._weight, normalised=True)
