"""NodePorts: host ports must be free. Source: kube-scheduler `nodeports`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pumice.core.kube.ports import ports_in_use
from pumice.core.session.points.columns import Clause, ColumnCheck
from pumice.core.session.points.nodes import Reads
from pumice.core.session.reasons import Code, Reason
from pumice.core.state.scalars import CellColumn, cells_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.kube.placed import Placed
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.points.batches import BoolArray
    from pumice.core.session.points.columns import At, RowReader, V
    from pumice.core.session.session import Session

TAKEN = Reason("NodePorts", Code.UNSCHEDULABLE, "node(s) didn't have free ports for the requested pod ports")


class IsTaken(NamedTuple):
    """A pod of the node uses a port that clashes."""

    rivals: CellColumn

    def __call__(self, read: RowReader[V], /) -> Callable[[At], bool | BoolArray]:
        """(how columns are read) -> (where) -> whether it holds."""
        rivals = read.of(self.rivals)
        return lambda at: rivals[at] > 0


def has_host_ports(template: PodTemplate) -> bool:
    """Tasks without host ports are all the same to the filter."""
    return bool(template.host_ports)


class NodePorts:
    """The filter."""

    name = "NodePorts"
    reads = Reads(concerns=has_host_ports, needs_pre_filter=True)

    def __init__(self, placed: Placed) -> None:
        self._placed = placed

    def prepare(self, session: Session, task: Task) -> ColumnCheck | None:
        """None for a pod without host ports."""
        wanted = task.template.host_ports
        if not wanted:
            return None
        ports, code = ports_in_use(self._placed), session.reasons.intern(TAKEN)
        clauses = [Clause(IsTaken(cells_of(ports.rivals(port))), code) for port in wanted]
        return ColumnCheck(clauses, catch_up=ports.catch_up)
