"""TaintToleration: the fewer PreferNoSchedule taints are not tolerated, the better.

Source: kube-scheduler `tainttoleration` (Score).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.core.kube.scores import MAX_NODE_SCORE
from pumice.core.kube.taints import count_soft_untolerated
from pumice.core.plugins.nodeorder.static import ConstantScore, StaticScore
from pumice.core.session.points.nodes import TEMPLATE_ONLY
from pumice.core.state.derived import Like, derived
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.kube.taints import Toleration
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.session import Session
    from pumice.core.state.sources import NodeSpecs


@derived(NODES)
def _count(nodes: NodeSpecs, tolerations: Like[Sequence[Toleration]]) -> FloatArray | None:
    return count_soft_untolerated(nodes, tolerations.subject)


class TaintToleration:
    """Prefers nodes that do not ask to be spared."""

    name = "TaintToleration"
    reads = TEMPLATE_ONLY

    def __init__(self, session: Session, weight: int) -> None:
        self._weight = float(weight)
        best = MAX_NODE_SCORE * self._weight
        self._untainted = ConstantScore(best, np.full(session.nodes.count, best))

    def prepare(self, session: Session, task: Task) -> StaticScore | ConstantScore:
        """For the task's template; where no node has such a taint every node gets the highest score."""
        tolerations = task.template.tolerations
        content = msgspec.json.encode(tolerations, order="deterministic") if tolerations else b""
        raw = _count(session.nodes, Like(content, tolerations))
        return self._untainted if raw is None else StaticScore(raw, self._weight, normalised=True, reverse=True)
