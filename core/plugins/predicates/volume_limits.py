"""NodeVolumeLimits: CSI volumes that a node can attach. Source: kube-scheduler `nodevolumelimits/csi.go`."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from core.kube.attachments import attachables, attachments
from core.kube.storage import UnreadableVolumesError, has_ephemeral, uses_claims
from core.session.points.nodes import Reads, Volatility
from core.session.points.ready import ReadyCheck
from core.session.reasons import Code, Reason

if TYPE_CHECKING:
    from core.kube.attachments import Attachable, Attachments
    from core.kube.placed import Placed
    from core.objects.pod import Task
    from core.session.points.nodes import Rows
    from core.session.reasons import IntArray
    from core.session.session import Session

NAME = "NodeVolumeLimits"
EXCEEDED = Reason(NAME, Code.UNSCHEDULABLE, "node(s) exceed max volume count")


class VolumeLimitsCheck:
    """Attached volumes of a driver + those that are new to the node <= the node's limit, driver by driver."""

    volatility = Volatility.ROW

    def __init__(self, attached: Attachments, wanted: set[Attachable], code: int) -> None:
        self._attached, self._code = attached, code
        self._by_driver: dict[str, list[Attachable]] = defaultdict(list)
        for volume in wanted:
            if volume.driver in attached.limits:
                self._by_driver[volume.driver].append(volume)

    def reject(self, rows: Rows) -> IntArray:
        """Reason number per row, int32 [len(rows)]."""
        attached = self._attached
        attached.catch_up()
        codes: IntArray = np.zeros(len(next(iter(attached.limits.values()))), dtype=np.int32)
        for driver, volumes in self._by_driver.items():
            new = np.full(len(codes), len(volumes), dtype=np.int32)
            for volume in volumes:
                new[attached.rows_using(volume)] -= 1
            too_many = attached.attached(driver).astype(np.int64) + new > attached.limits[driver]
            codes[too_many & (new > 0)] = self._code
        return codes[rows]

    def reject_one(self, row: int) -> int:
        """Reason number of one row, 0 where it passes: what `reject` says of it."""
        attached = self._attached
        attached.catch_up()
        for driver, volumes in self._by_driver.items():
            new = sum(not attached.uses(row, volume) for volume in volumes)
            if new and int(attached.attached(driver)[row]) + new > int(attached.limits[driver][row]):
                return self._code
        return 0


class VolumeLimits:
    """The filter."""

    name = NAME
    reads = Reads(labels=True, concerns=uses_claims, anew=has_ephemeral)  # claims are found by namespace and name

    def __init__(self, placed: Placed) -> None:
        self._placed = placed

    def prepare(self, session: Session, task: Task) -> VolumeLimitsCheck | ReadyCheck | None:
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
        if not any(volume.driver in attached.limits for volume in wanted):
            return None
        return VolumeLimitsCheck(attached, wanted, session.reasons.intern(EXCEEDED))
