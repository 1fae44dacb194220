# SPDX-License-Identifier: Apache-2.0
"""NodeVolumeLimits: CSI volumes that a node can attach. Source: kube-scheduler `nodevolumelimits/csi.go`."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pumice.core.kube.storage import (
    Storage,
    UnreadableVolumesError,
    claim_key,
    claim_names,
    class_name,
    has_ephemeral,
    uses_claims,
    volume_name,
)
from pumice.core.objects.metadata import rows, section
from pumice.core.session.points.columns import Clause, Clauses
from pumice.core.session.points.nodes import Reads
from pumice.core.session.points.rules import Check, ColumnRule
from pumice.core.session.reasons import Code, Reason
from pumice.core.state.dimensions import CellColumn, cells_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.core.kube.placed import Move, Placed
    from pumice.core.objects.metadata import Object
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.columns import At, RowReader, V
    from pumice.core.session.points.nodes import BoolArray
    from pumice.core.session.session import Session

# --- Attached volumes
# Source: kube-scheduler `nodevolumelimits`. A volume counts once a node, however many pods use it. In-tree volumes are
# not translated to their CSI drivers.

CountArray = npt.NDArray[np.int32]
NO_LIMIT = np.iinfo(np.int32).max


class Attachable(NamedTuple):
    """A volume as a CSI driver knows it; `handle` stands for the claim where the volume is not made yet."""

    driver: str
    handle: str


def _attachable(storage: Storage, claim: Object) -> Attachable | None:
    volume: Object | None = None
    if volume_name(claim):
        volume = storage.of_kind("PersistentVolume").get(volume_name(claim))
    if volume is not None:
        csi = section(section(volume, "spec"), "csi")
        driver, handle = str(csi.get("driver") or ""), str(csi.get("volumeHandle") or "")
        return Attachable(driver, handle) if driver and handle else None
    known = storage.of_kind("StorageClass").get(class_name(claim)) if class_name(claim) else None
    provisioner = str(known.get("provisioner") or "") if known else ""
    return Attachable(provisioner, f"claim {claim_key(claim)}") if provisioner else None


def attachables(storage: Storage, task: Task) -> set[Attachable]:
    """Return the CSI volumes that a pod needs. Raises StorageError for a claim that does not exist."""
    found: set[Attachable] = set()
    for name, _ in claim_names(task):
        try:
            claim = storage.claim(task.namespace, name)
        except UnreadableVolumesError as error:
            raise UnreadableVolumesError(f"looking up PVC {task.namespace}/{name}: {error}") from error
        volume = _attachable(storage, claim)
        if volume is not None:
            found.add(volume)
    return found


class Attachments:
    """Users of each volume on each node, and the nodes' limits, kept up to date as pods come and go."""

    def __init__(self, placed: Placed, objects: Mapping[str, Mapping[str, Object]]) -> None:
        self._placed, self.storage = placed, Storage(objects)
        self._users: dict[Attachable, dict[int, int]] = {}  # -> node row -> pods
        self._attached: set[tuple[int, Attachable]] = set()
        self._counts: dict[str, CountArray] = {}
        self._read = 0
        self.limits = self._read_limits()
        if self.limits:
            self._read_attachments()
            for move in placed.special_at_opening():
                self._count(move)

    def _read_limits(self) -> dict[str, CountArray]:
        """Return driver -> most volumes per node [N], NO_LIMIT where the node names none."""
        limits: dict[str, CountArray] = {}
        for name, node in self.storage.of_kind("CSINode").items():
            row = self._placed.nodes.row.get(name)
            for driver in rows(section(node, "spec"), "drivers"):
                most = section(driver, "allocatable").get("count")
                if row is not None and most is not None:
                    column = limits.setdefault(str(driver.get("name") or ""), self._column(NO_LIMIT))
                    column[row] = int(most)
        return limits

    def _column(self, value: int = 0) -> CountArray:
        return np.full(self._placed.nodes.count, value, dtype=np.int32)

    def _read_attachments(self) -> None:
        for one in self.storage.of_kind("VolumeAttachment").values():
            spec = section(one, "spec")
            row = self._placed.nodes.row.get(str(spec.get("nodeName") or ""))
            volume = self.storage.of_kind("PersistentVolume").get(
                str(section(spec, "source").get("persistentVolumeName") or "")
            )
            csi = section(section(volume, "spec"), "csi") if volume else {}
            if row is not None and spec.get("attacher") and csi:
                attachable = Attachable(str(spec["attacher"]), str(csi.get("volumeHandle") or ""))
                if (row, attachable) not in self._attached:
                    self._attached.add((row, attachable))
                    self._counts.setdefault(attachable.driver, self._column())[row] += 1

    def _count(self, move: Move) -> None:
        storage, (task, row, sign) = self.storage, move
        for name, _ in claim_names(task):
            claim = storage.of_kind("PersistentVolumeClaim").get(f"{task.namespace}/{name}")
            volume = _attachable(storage, claim) if claim else None
            if volume is None:
                continue
            users = self._users.setdefault(volume, {})
            before = users.get(row, 0)
            users[row] = before + sign
            # Only the first pod to come and the last to go change the count; what a VolumeAttachment names counts
            # anyway.
            if (row, volume) not in self._attached and (before > 0) != (before + sign > 0):
                self._counts.setdefault(volume.driver, self._column())[row] += sign

    def catch_up(self) -> int:
        """Read the placements and removals since the last call; return their number since the session began."""
        log = self._placed.log
        while self._read < len(log):
            if self.limits:
                self._count(log[self._read])
            self._read += 1
        return self._read

    def attached(self, driver: str) -> CountArray:
        """Return the volumes of a driver per node [N]."""
        return self._counts.setdefault(driver, self._column())

    def rows_using(self, volume: Attachable) -> list[int]:
        """Return the nodes with a pod that uses that volume."""
        return [row for row, users in self._users.get(volume, {}).items() if users > 0]


NAME = "NodeVolumeLimits"
EXCEEDED = Reason(NAME, Code.UNSCHEDULABLE, "node(s) exceed max volume count")


class TooMany(NamedTuple):
    """Refuses a node where attached volumes of a driver + the node's new ones > the node's limit."""

    attached: CellColumn
    new: CellColumn
    limits: CellColumn

    def __call__(self, read: RowReader[V], /) -> Callable[[At], bool | BoolArray]:
        """Return a function: (reader of columns) -> (rows) -> True where the filter passes."""
        attached, new, limits = read.of(self.attached), read.of(self.new), read.of(self.limits)
        return lambda at: (attached[at] + new[at] > limits[at]) & (new[at] > 0)


class WantedVolumes:
    """Counts of the pod's volumes that each node lacks, by driver, int32 [N]; only drivers with limits."""

    def __init__(self, attached: Attachments, wanted: set[Attachable]) -> None:
        self._attached = attached
        self._by_driver: dict[str, list[Attachable]] = defaultdict(list)
        for volume in sorted(wanted):
            if volume.driver in attached.limits:
                self._by_driver[volume.driver].append(volume)
        self._read = -1
        self._new = {driver: np.zeros_like(attached.limits[driver]) for driver in self._by_driver}

    def catch_up(self) -> int:
        """Count again where something was placed or taken off since the last call; return how much was read."""
        read = self._attached.catch_up()
        if read != self._read:
            self._read = read
            for driver, volumes in self._by_driver.items():
                new = self._new[driver]
                new[:] = len(volumes)
                for volume in volumes:
                    # Where a pod uses the volume already it needs no second attachment.
                    new[self._attached.rows_using(volume)] -= 1
        return read

    def clauses(self, code: int) -> list[Clause]:
        """Return a clause for each driver."""
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

    def prepare(self, session: Session, task: Task) -> Check | None:
        """Return the answers; None for a pod without CSI volumes, and where no node has limits.

        A claim that does not exist refuses every node.
        """
        if not uses_claims(task.template):
            return None
        attached = self._placed.reader(Attachments, session.objects)
        try:
            wanted = attachables(attached.storage, task)
        except UnreadableVolumesError as error:
            code = session.reasons.intern(Reason(NAME, Code.UNRESOLVABLE, str(error)))
            return ColumnRule(np.full(session.nodes.count, code, dtype=np.int32))
        volumes = WantedVolumes(attached, wanted)
        clauses = volumes.clauses(session.reasons.intern(EXCEEDED))
        return ColumnRule(Clauses(*clauses), follow=volumes.catch_up) if clauses else None
