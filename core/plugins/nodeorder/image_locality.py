"""ImageLocality: nodes that have the pod's images. Source: kube-scheduler `imagelocality`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.kube.images import container_images, image_scores
from core.kube.rows import memo_table
from core.plugins.nodeorder.static import StaticScore

if TYPE_CHECKING:
    from core.objects.pod import Task
    from core.session.node_points import FloatArray
    from core.session.session import Session


class ImageLocality:
    """Prefers nodes that need not pull."""

    name = "ImageLocality"
    reads_labels = False

    def __init__(self, weight: int) -> None:
        self._weight = float(weight)
        self._table = f"ImageLocality {self._weight}"

    def prepare(self, session: Session, task: Task) -> StaticScore | None:
        """For the task's template; None when no node has enough of its images to count."""
        template, table = task.template, memo_table(session.nodes, self._table)
        if template not in table:
            scores = image_scores(session.nodes, container_images(template))
            table[template] = None if scores is None else scores * self._weight
        raw: FloatArray | None = table[template]
        return None if raw is None else StaticScore(raw, 1.0, normalised=False)
