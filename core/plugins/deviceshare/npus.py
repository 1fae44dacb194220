"""MindCluster's NPUs in a session, and the scores that nodes get together. Source: Volcano
`plugins/deviceshare/devices/ascend/310p/vnpu`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.devices.ascend import CORE, MindClusterNpu, NpuFrame, Reports, Resident, npu_node, shares
from pumice.core.life.task import TaskStatus
from pumice.core.session.points.by_rows import RowsScore
from pumice.core.session.points.nodes import Reads

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import FloatArray, Rows
    from pumice.core.session.session import Session

SETTINGS: Final = "init-params"
BY_CLUSTER: Final = "useClusterInfoManager"
OWN_LIST: Final = "self-maintain-available-card"
CHIPS_ONCE: Final = "npu-chips-once"
PRESET: Final = "presetVirtualDevice"
HIGH: Final = 8.0
LEAVING: Final = (TaskStatus.RELEASING, TaskStatus.PIPELINED)


def mindcluster(session: Session) -> MindClusterNpu:
    """The NPUs of a session's nodes, with the parts of them that pods have."""
    said = session.config.configurations.get(SETTINGS, {})
    reports = Reports(session.objects.get("ConfigMap", {}), cluster=_is_on(said.get(BY_CLUSTER)))
    own_list, nodes = _is_on(said.get(OWN_LIST)), session.nodes
    found = [
        npu_node(spec, reports.of(spec.name), _residents(session, row), own_list=own_list)
        for row, spec in enumerate(nodes.specs)
    ]
    there = zip(found, nodes.specs, strict=True)
    counted = [node.status is not None and CORE in (spec.allocatable.scalars or ()) for node, spec in there]
    known = CORE in session.dims.names
    idle: FloatArray = nodes.idle[session.dims.index(CORE)] if known else np.zeros(nodes.count)
    frame = NpuFrame(_is_on(said.get(BY_CLUSTER)), own_list, said.get(PRESET) in (True, "true"), int(session.clock.now))
    once = CHIPS_ONCE in session.config.pumice.fix
    return MindClusterNpu(nodes.names, found, idle, np.array(counted, dtype=np.bool_), frame, once=once)


def _is_on(said: object) -> bool:
    """A setting that is on unless it says something else than true."""
    return said in (None, True, "true")


def _residents(session: Session, row: int) -> list[Resident]:
    nodes, snapshot = session.nodes, session.snapshot
    return [
        Resident(task, snapshot.annotations_of(task), nodes.seen_status[task.row] in LEAVING)
        for task in nodes.tasks_on(row)
    ]


class NpuScore(RowsScore):
    """One task's: what a node gets depends on its rivals."""

    normalised = True

    def __init__(self, family: MindClusterNpu, task: Task, weight: int) -> None:
        self._family, self._task, self._weight = family, task, weight

    def score(self, rows: Rows, /) -> FloatArray:
        """Raw score per row, shape [len(rows)]."""
        return self._family.rank(self._task, rows)

    def finish(self, raw: FloatArray, /) -> FloatArray:
        """NormalizeScore over the candidates' raw scores, times the weight."""
        return shares(raw, HIGH) * self._weight


class NpuScorer:
    """Scores nodes by MindCluster's NPUs. Every pod is scored, be it one that asks for NPUs or not."""

    name = "deviceshare"

    def __init__(self, family: MindClusterNpu, weight: int) -> None:
        self._family, self._weight = family, weight
        self.reads = Reads(kind=family.kind)

    def prepare(self, session: Session, task: Task) -> NpuScore | None:
        """What scores nodes for the task (PreScore)."""
        del session
        return NpuScore(self._family, task, self._weight)
