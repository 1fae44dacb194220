"""TaintToleration: the fewer PreferNoSchedule taints are not tolerated, the better.

Source: kube-scheduler `tainttoleration` (Score).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from core.kube.rows import memo_table
from core.kube.scores import MAX_NODE_SCORE
from core.kube.taints import count_soft_untolerated
from core.plugins.nodeorder.static import ConstantScore, StaticScore

if TYPE_CHECKING:
    from core.objects.pod import Task
    from core.session.node_points import FloatArray
    from core.session.session import Session


class TaintToleration:
    """Prefers nodes that do not ask to be spared."""

    name = "TaintToleration"
    reads_labels = False

    def __init__(self, session: Session, weight: int) -> None:
        self._weight = float(weight)
        best = MAX_NODE_SCORE * self._weight
        self._untainted = ConstantScore(best, np.full(session.nodes.count, best))

    def prepare(self, session: Session, task: Task) -> StaticScore | ConstantScore:
        """For the task's template; where no node has such a taint every node gets the highest score."""
        tolerations = task.template.tolerations
        content = msgspec.json.encode(tolerations, order="deterministic") if tolerations else b""
        table = memo_table(session.nodes, "soft taints")
        if content not in table:
            table[content] = count_soft_untolerated(session.nodes, tolerations)
        raw: FloatArray | None = table[content]
        return self._untainted if raw is None else StaticScore(raw, self._weight, normalised=True, reverse=True)
