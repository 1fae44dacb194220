"""ImageLocality: nodes that have the pod's images. Source: kube-scheduler `imagelocality`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.kube.images import container_images, image_scores
from pumice.core.plugins.nodeorder.static import StaticScore
from pumice.core.session.points.nodes import TEMPLATE_ONLY
from pumice.core.state.derived import derived
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.session import Session
    from pumice.core.state.sources import NodeSpecs


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
