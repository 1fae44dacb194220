# SPDX-License-Identifier: Apache-2.0
"""NodePorts: host ports must be free. Source: kube-scheduler `nodeports`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.core.session.points.columns import Clause, Clauses
from pumice.core.session.points.nodes import Reads
from pumice.core.session.points.rules import Check, ColumnRule
from pumice.core.session.reasons import Code, Reason
from pumice.core.state.dimensions import CellColumn, cells_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from pumice.core.kube.placed import Move, Placed
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.points.columns import At, RowReader, V
    from pumice.core.session.points.nodes import BoolArray
    from pumice.core.session.session import Session

# --- Ports in use
# Source: kube-scheduler `HostPortInfo` (framework types). The address 0.0.0.0 stands for all addresses.

ANY_ADDRESS = "0.0.0.0"
HostPort = tuple[str, str, int]  # (address, protocol, port)


class PortsInUse:
    """Counts of the pods of each node that use each (address, protocol, port), as columns over node rows."""

    def __init__(self, placed: Placed) -> None:
        self._placed = placed
        self._read = 0
        self._users: dict[HostPort, npt.NDArray[np.int32]] = {}
        self._rivals: dict[HostPort, npt.NDArray[np.int32]] = {}  # of the ports that a pod wanted
        for move in placed.special_at_opening():
            self._count(move)

    def _count(self, move: Move) -> None:
        task, row, sign = move
        for used in task.template.host_ports:
            self._column(self._users, used)[row] += sign
            for wanted, rivals in self._rivals.items():
                if _clash(used, wanted):
                    rivals[row] += sign

    def _column(self, columns: dict[HostPort, npt.NDArray[np.int32]], port: HostPort) -> npt.NDArray[np.int32]:
        if port not in columns:
            columns[port] = np.zeros(self._placed.nodes.count, dtype=np.int32)
        return columns[port]

    def catch_up(self) -> int:
        """Read the placements and removals since the last call; return their number."""
        log = self._placed.log
        while self._read < len(log):
            self._count(log[self._read])
            self._read += 1
        return self._read

    def rivals(self, wanted: HostPort) -> npt.NDArray[np.int32]:
        """Return the number of pods on each node that use a conflicting port, [N]; `catch_up` updates it."""
        if wanted not in self._rivals:
            found = self._column(self._rivals, wanted)
            for used, users in self._users.items():
                if _clash(used, wanted):
                    found += users
        return self._rivals[wanted]


def _clash(used: HostPort, wanted: HostPort) -> bool:
    return used[1:] == wanted[1:] and (ANY_ADDRESS in (used[0], wanted[0]) or used[0] == wanted[0])


TAKEN = Reason("NodePorts", Code.UNSCHEDULABLE, "node(s) didn't have free ports for the requested pod ports")


class IsTaken(NamedTuple):
    """Refuses a node with a pod that uses a conflicting port."""

    rivals: CellColumn

    def __call__(self, read: RowReader[V], /) -> Callable[[At], bool | BoolArray]:
        """Return a function: (reader of columns) -> (rows) -> True where the filter passes."""
        rivals = read.of(self.rivals)
        return lambda at: rivals[at] > 0


def has_host_ports(template: PodTemplate) -> bool:
    """Return whether the task has host ports: tasks without any share an answer."""
    return bool(template.host_ports)


class NodePorts:
    """The filter."""

    name = "NodePorts"
    reads = Reads(concerns=has_host_ports, needs_pre_filter=True)

    def __init__(self, placed: Placed) -> None:
        self._placed = placed

    def prepare(self, session: Session, task: Task) -> Check | None:
        """Return the answers; None for a pod without host ports."""
        wanted = task.template.host_ports
        if not wanted:
            return None
        ports, code = self._placed.reader(PortsInUse), session.reasons.intern(TAKEN)
        clauses = [Clause(IsTaken(cells_of(ports.rivals(port))), code) for port in wanted]
        return ColumnRule(Clauses(*clauses), follow=ports.catch_up)
