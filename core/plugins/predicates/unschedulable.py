"""NodeUnschedulable: a cordoned node takes only pods that tolerate its taint.

Source: kube-scheduler `nodeunschedulable`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pumice.core.kube.taints import UNSCHEDULABLE_TAINT, tolerated
from pumice.core.session.reasons import Code, Reason

if TYPE_CHECKING:
    from pumice.core.kube.rows import BoolArray, NodeRows
    from pumice.core.objects.pod_template import PodTemplate


class Unschedulable:
    """Asks for spec.unschedulable."""

    reason: ClassVar[Reason] = Reason("NodeUnschedulable", Code.UNRESOLVABLE, "node(s) were unschedulable")

    def content(self, template: PodTemplate) -> str | None:
        """Only whether the taint is tolerated matters."""
        return None if tolerated(template.tolerations, UNSCHEDULABLE_TAINT) else "cordoned"

    def refused(self, nodes: NodeRows, template: PodTemplate) -> BoolArray:
        """Mask [N] of the cordoned nodes."""
        return np.array([spec.unschedulable for spec in nodes.specs], dtype=np.bool_)
