"""ImageLocality: nodes that have the pod's images. Source: kube-scheduler `imagelocality`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.kube.images import container_images, image_scores
from core.plugins.nodeorder.static import StaticScore
from core.session.points.nodes import TEMPLATE_ONLY
from core.state.derived import derived
from core.state.sources import NODES

if TYPE_CHECKING:
    from core.objects.pod import Task
    from core.objects.pod_template import PodTemplate
    from core.session.points.nodes import FloatArray
    from core.session.session import Session
    from core.state.sources import NodeSpecs


@derived(NODES)
def _scores(nodes: NodeSpecs, template: PodTemplate, weight: float) -> FloatArray | None:
    scores = image_scores(nodes, container_images(template))
    return None if scores is None else scores * weight


class ImageLocality:
    """Prefers nodes that need not pull."""

    name = "ImageLocality"
    reads = TEMPLATE_ONLY

    def __init__(self, weight: int) -> None:
        self._weight = float(weight)

    def prepare(self, session: Session, task: Task) -> StaticScore | None:
        """For the task's template; None when no node has enough of its images to count."""
        raw = _scores(session.nodes, task.template, self._weight)
        return None if raw is None else StaticScore(raw, 1.0, normalised=False)
