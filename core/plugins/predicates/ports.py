"""NodePorts: host ports must be free. Source: kube-scheduler `nodeports`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from core.kube.ports import ports_in_use
from core.session.points.nodes import Reads, Volatility
from core.session.reasons import Code, Reason

if TYPE_CHECKING:
    from core.kube.placed import Placed
    from core.kube.ports import HostPort, PortsInUse
    from core.objects.pod import Task
    from core.objects.pod_template import PodTemplate
    from core.session.points.nodes import Rows
    from core.session.reasons import IntArray
    from core.session.session import Session

TAKEN = Reason("NodePorts", Code.UNSCHEDULABLE, "node(s) didn't have free ports for the requested pod ports")


class NodePortsCheck:
    """Asks for the ports of one template."""

    volatility = Volatility.ROW

    def __init__(self, ports: PortsInUse, wanted: tuple[HostPort, ...], code: int) -> None:
        self._ports, self._wanted, self._code = ports, wanted, code

    def reject(self, rows: Rows) -> IntArray:
        """Reason number per row, int32 [len(rows)]."""
        return self._ports.rows_in_conflict(self._wanted)[rows] * np.int32(self._code)

    def reject_one(self, row: int) -> int:
        """Reason number of one row, 0 where it passes: what `reject` says of it."""
        return self._code if self._ports.in_conflict(self._wanted, row) else 0


def has_host_ports(template: PodTemplate) -> bool:
    """Tasks without host ports are all the same to the filter."""
    return bool(template.host_ports)


class NodePorts:
    """The filter."""

    name = "NodePorts"
    reads = Reads(concerns=has_host_ports)

    def __init__(self, placed: Placed) -> None:
        self._placed = placed

    def prepare(self, session: Session, task: Task) -> NodePortsCheck | None:
        """None for a pod without host ports."""
        wanted = task.template.host_ports
        if not wanted:
            return None
        return NodePortsCheck(ports_in_use(self._placed), wanted, session.reasons.intern(TAKEN))
