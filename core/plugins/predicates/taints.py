"""TaintToleration: NoSchedule and NoExecute taints. Source: kube-scheduler `tainttoleration`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from pumice.core.kube.taints import rows_untolerated
from pumice.core.session.reasons import Code, Reason

if TYPE_CHECKING:
    from pumice.core.kube.rows import BoolArray, NodeRows
    from pumice.core.objects.pod_template import PodTemplate


class UntoleratedTaints:
    """Asks for taints that keep a pod off."""

    reason: ClassVar[Reason] = Reason("TaintToleration", Code.UNRESOLVABLE, "node(s) had untolerated taint(s)")

    def content(self, template: PodTemplate) -> bytes:
        """The tolerations."""
        return msgspec.json.encode(template.tolerations, order="deterministic") if template.tolerations else b""

    def refused(self, nodes: NodeRows, template: PodTemplate) -> BoolArray | None:
        """Mask [N] of the nodes with such a taint."""
        return rows_untolerated(nodes, template.tolerations)
