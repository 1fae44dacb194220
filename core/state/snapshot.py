# SPDX-License-Identifier: Apache-2.0
"""The start of a session: copies of the view's columns beside the shared immutable specs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from pumice.core.state.dimensions import FloatArray

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.core.messages.decisions import BindContext
    from pumice.core.objects.metadata import Object
    from pumice.core.objects.node import NodeSpec
    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.state.derived import DerivedColumns
    from pumice.core.state.dimensions import Dimensions
    from pumice.core.state.jobs import Job
    from pumice.core.state.kept_columns import Lease

# --- Assumed pods


class Promised(NamedTuple):
    """The volumes and devices of a pod that is being bound to `node`, and the annotations that its bind writes."""

    node: str
    pre_bind: BindContext


class AssumedPods(dict[str, str]):
    """The node of each assumed pod by "namespace/name". A dict itself, since every changed pod is looked up here."""

    def __init__(self) -> None:
        super().__init__()
        self._promised: dict[str, Promised] = {}
        self._shared = False

    def hold(self, pod: str, node: str, pre_bind: BindContext | None) -> None:
        """Note that the bind is in flight."""
        self[pod] = node
        if pre_bind is not None:
            self._own()[pod] = Promised(node, pre_bind)

    def drop(self, pod: str) -> None:
        """Note that the bind has arrived, or never will."""
        if self.pop(pod, None) is not None and pod in self._promised:
            del self._own()[pod]

    def check(self) -> list[str]:
        """Return a sentence for each promise to a pod that is not in flight."""
        return [f"{pod} is promised something, and not in flight" for pod in self._promised if pod not in self]

    def share(self) -> dict[str, Promised]:
        """Return what the pods in flight were promised, as it is now: it never changes."""
        self._shared = True
        return self._promised

    def _own(self) -> dict[str, Promised]:
        """Return the dict for changes: a copy where a snapshot has it."""
        if self._shared:
            # Copied at the first change after a snapshot: most cycles promise nothing, and the copy would be for each
            # of them.
            self._promised, self._shared = dict(self._promised), False
        return self._promised


class TaskColumns(Struct, frozen=True):
    """Tasks by row: `status` int8, `node` and `job` int32 (row or -1); `handles[row]` is the task or None; `seen`
    int8: the status in which its node has it.
    """

    status: npt.NDArray[np.int8]
    node: npt.NDArray[np.int32]
    job: npt.NDArray[np.int32]
    seen: npt.NDArray[np.int8]
    handles: list[Task | None]


class NodeColumns(Struct, frozen=True):
    """Nodes by row in name order; vectors float64 [dimension, node].

    `arrival`: rows as the nodes came. `future` is idle + releasing - pipelined; `requested`: kube-scheduler's sums;
    `releases` bool: whether anything was releasing when the session opened.
    """

    names: list[str]
    specs: list[NodeSpec]
    row: dict[str, int]
    arrival: npt.NDArray[np.intp]
    allocatable: FloatArray
    idle: FloatArray
    used: FloatArray
    releasing: FloatArray
    max_pods: npt.NDArray[np.int64]
    pod_count: npt.NDArray[np.int32]
    nonzero: FloatArray
    future: FloatArray
    pipelined: FloatArray
    requested: FloatArray
    releases: npt.NDArray[np.bool_]


class JobColumns(Struct, frozen=True):
    """Jobs by row (see JobTable); `order`: rows of the jobs in the session, by "namespace/name". `pending` stays as it
    was when the session opened. `serial`: the number of a job, which no other job of the view ever has.
    `known`: whether the job is in the session. `ready_tasks`: how many of its tasks are ready; `readiness` int8:
    whether these reach its minimum, with the pending best-effort ones. `calm`: see core/state/calm_jobs.py. `shares`
    [line, job], `share_of` [job] and `queue_sums` [line, queue]: see core/state/queue_sums.py; they stay as they were
    when the session opened.
    """

    handles: list[Job | None]
    order: npt.NDArray[np.intp]
    allocated: FloatArray
    pending: FloatArray
    total: FloatArray
    minimum: FloatArray
    counts: npt.NDArray[np.int32]
    best_effort: npt.NDArray[np.int32]
    gated: npt.NDArray[np.int32]
    min_member: npt.NDArray[np.int32]
    phase: npt.NDArray[np.int8]
    priority: npt.NDArray[np.int64]
    queue: npt.NDArray[np.int32]
    has_min_resources: npt.NDArray[np.bool_]
    reported: npt.NDArray[np.int32]
    announced: npt.NDArray[np.bool_]
    has_topology: npt.NDArray[np.bool_]
    created: FloatArray
    serial: npt.NDArray[np.int64]
    has_spec: npt.NDArray[np.bool_]
    known: npt.NDArray[np.bool_]
    ready_tasks: npt.NDArray[np.int32]
    readiness: npt.NDArray[np.int8]
    calm: npt.NDArray[np.bool_]
    shares: FloatArray
    share_of: npt.NDArray[np.int32]
    queue_sums: FloatArray

    def named(self, rows: npt.NDArray[np.intp]) -> list[Job]:
        """Return the jobs of these rows."""
        handles = self.handles
        wanted: list[int] = rows.tolist()
        return [job for row in wanted if (job := handles[row]) is not None]

    def at_opening(self) -> JobColumns:
        """Return columns as they were when the session opened, except counts: what late readers need of those that it
        changes is in the shares.
        """
        return replace(self, allocated=self.shares[: len(self.allocated)], phase=self.phase.copy())

    def as_they_are(self, *names: str) -> JobColumns:
        """Return columns of which `names` are copies, so that a session does not change them."""
        return replace(self, **{name: getattr(self, name).copy() for name in names})


class ResidentChanges(Struct, frozen=True):
    """The nodes whose dictionary of tasks has changed, up to one snapshot of the view. `number`: how many changes there
    were until then; `log`: their names, oldest first, from the change `start` on. Later snapshots share and extend it.
    """

    number: int
    start: int
    log: list[str]

    def since(self, number: int) -> frozenset[str] | None:
        """Return the names that changed after the snapshot of that number; None where that is not known any more."""
        # An earlier view counted anew, or too many changes ago: then every node must be looked at.
        if not self.start <= number <= self.number:
            return None
        return frozenset(self.log[number - self.start : self.number - self.start])


class Snapshot(Struct, frozen=True):
    """Everything a cycle may read.

    `residents`: the nodes on which any pod has changed; `particular`: those on which one that is not plain has.
    `queues` are in name order and numbered by it; `objects`: other kinds, by kind and name; `promised`: what pods
    that are being bound were promised, by pod. `derived`: what earlier sessions worked out and still holds; the
    session that takes the snapshot over has it to itself until it closes. `lease`: of columns that are kept for the
    next session; None where they are copies.
    """

    version: int
    dimensions: Dimensions
    tasks: TaskColumns
    nodes: NodeColumns
    jobs: JobColumns
    queues: list[Queue]
    node_tasks: dict[str, dict[str, Task]]
    residents: ResidentChanges
    particular: ResidentChanges
    objects: dict[str, dict[str, Object]]
    promised: Mapping[str, Promised]
    derived: DerivedColumns
    lease: Lease | None = None

    def kept_for_later(self) -> Callable[[], Snapshot]:
        """Return a function for a copy for another, later session, independent of the phases in which this one's jobs
        end.
        """
        phase, bare = self.jobs.phase.copy(), replace(self, derived=self.derived.afresh(), lease=None)
        return lambda: replace(bare, jobs=replace(bare.jobs, phase=phase))

    def annotations_of(self, task: Task) -> Mapping[str, str]:
        """Return the pod's annotations; while its bind is in flight, with those that the bind writes."""
        promised = self.promised.get(task.key)
        return task.annotations if promised is None else {**task.annotations, **promised.pre_bind.written}


def with_task_minimums(snapshot: Snapshot) -> Snapshot:
    """Return it with every job's minimum raised to the sum of its roles' minimums (fix). Volcano ignores the roles'
    minimums where the job's is below their sum (job_info.go, CheckTaskReady).
    """
    jobs = snapshot.jobs
    least = jobs.min_member.copy()
    for job in jobs.named(jobs.order):
        least[job.row] = max(least[job.row], job.pod_group.min_task_total)
    readiness = (jobs.ready_tasks + jobs.best_effort >= least).astype(np.int8)
    return replace(snapshot, jobs=replace(jobs, min_member=least, readiness=readiness))
