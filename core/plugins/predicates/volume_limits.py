"""NodeVolumeLimits: CSI volumes that a node can attach. Source: kube-scheduler `nodevolumelimits/csi.go`."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.core.kube.attachments import attachables, attachments
from pumice.core.kube.storage import UnreadableVolumesError, has_ephemeral, uses_claims
from pumice.core.session.points.columns import Clause, ColumnCheck
from pumice.core.session.points.nodes import Reads
from pumice.core.session.points.ready import ReadyCheck
from pumice.core.session.reasons import Code, Reason
from pumice.core.state.scalars import CellColumn, cells_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.kube.attachments import Attachable, Attachments
    from pumice.core.kube.placed import Placed
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.batches import BoolArray
    from pumice.core.session.points.columns import At, RowReader, V
    from pumice.core.session.session import Session

NAME = "NodeVolumeLimits"
EXCEEDED = Reason(NAME, Code.UNSCHEDULABLE, "node(s) exceed max volume count")


class TooMany(NamedTuple):
    """Attached volumes of a driver + those that are new to the node > the node's limit."""

    attached: CellColumn
    new: CellColumn
    limits: CellColumn

    def __call__(self, read: RowReader[V], /) -> Callable[[At], bool | BoolArray]:
        """(how columns are read) -> (where) -> whether it holds."""
        attached, new, limits = read.of(self.attached), read.of(self.new), read.of(self.limits)
        return lambda at: (attached[at] + new[at] > limits[at]) & (new[at] > 0)


class WantedVolumes:
    """How many of the volumes that a pod wants are new to each node, by driver, int32 [N]; only drivers with limits."""

    def __init__(self, attached: Attachments, wanted: set[Attachable]) -> None:
        self._attached = attached
        self._by_driver: dict[str, list[Attachable]] = defaultdict(list)
        for volume in sorted(wanted):
            if volume.driver in attached.limits:
                self._by_driver[volume.driver].append(volume)
        self._read = -1
        self._new = {driver: np.zeros_like(attached.limits[driver]) for driver in self._by_driver}

    def catch_up(self) -> None:
        """Count again where something was placed or taken off since."""
        read = self._attached.catch_up()
        if read != self._read:
            self._read = read
            for driver, volumes in self._by_driver.items():
                new = self._new[driver]
                new[:] = len(volumes)
                for volume in volumes:
                    new[self._attached.rows_using(volume)] -= 1

    def clauses(self, code: int) -> list[Clause]:
        """One for each driver."""
        return [
            Clause(TooMany(*map(cells_of, (self._attached.attached(driver), new, self._attached.limits[driver]))), code)
            for driver, new in self._new.items()
        ]


class VolumeLimits:
    """The filter."""

    name = NAME
    reads = Reads(labels=True, concerns=uses_claims, anew=has_ephemeral)  # claims are found by namespace and name

    def __init__(self, placed: Placed) -> None:
        self._placed = placed

    def prepare(self, session: Session, task: Task) -> ColumnCheck | ReadyCheck | None:
        """None for a pod without CSI volumes, and where no node has limits.

        A claim that is not there refuses every node.
        """
        if not uses_claims(task.template):
            return None
        attached = attachments(self._placed, session.objects)
        try:
            wanted = attachables(attached.storage, task)
        except UnreadableVolumesError as error:
            code = session.reasons.intern(Reason(NAME, Code.UNRESOLVABLE, str(error)))
            return ReadyCheck(np.full(session.nodes.count, code, dtype=np.int32))
        volumes = WantedVolumes(attached, wanted)
        clauses = volumes.clauses(session.reasons.intern(EXCEEDED))
        return ColumnCheck(clauses, catch_up=volumes.catch_up) if clauses else None
