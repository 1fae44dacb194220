# SPDX-License-Identifier: Apache-2.0
"""Jobs of the view: a PodGroup's specification, its tasks, and counts and sums over them as columns.

Columns follow Volcano's `JobInfo` (reference section 5.3): counts by status, Allocated, TotalRequest and what is
pending.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from pumice.core.life.pod_group import BY_LABEL, phase_of
from pumice.core.life.task import COUNT, IS_ALLOCATED, READY_STATUSES, TaskStatus, total_of
from pumice.core.objects.pod_group import READY
from pumice.core.state import calm_jobs, queue_sums
from pumice.core.state.dimensions import LEAST_ROOM, FloatArray, Rows, floats, grown, heightened, integers

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_group import PodGroupSpec
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.state.dimensions import Dimensions
    from pumice.core.state.kept_columns import Arrays

NO_QUEUE = NO_PHASE = NO_ROW = -1
PENDING, SUCCEEDED, FAILED = TaskStatus.PENDING, TaskStatus.SUCCEEDED, TaskStatus.FAILED
FEW = 8
"""When more jobs have come and gone it is quicker to put all in order anew."""


class Job:
    """A job and its tasks. It does not change once a snapshot has seen it: the table replaces it by a copy then.

    `spec` is None while only pods have been seen. `pod_group` is the same without the doubt, and not there before the
    first specification: only jobs that have one are in a session. `tasks`: by pod uid.
    """

    __slots__ = (
        "_alike",
        "_plain",
        "_roles",
        "_sorted",
        "_template",
        "epoch",
        "key",
        "name",
        "namespace",
        "pod_group",
        "row",
        "settled_under",
        "spec",
        "tasks",
        "valid_under",
    )

    def __init__(self, row: int, key: str, epoch: int) -> None:
        self.row = row
        self.key = key
        self.namespace, _, self.name = key.partition("/")
        self.epoch = epoch
        self.spec: PodGroupSpec | None = None
        self.pod_group: PodGroupSpec
        self.tasks: dict[str, Task] = {}
        self._sorted: list[Task] | None = None
        self._template: PodTemplate | Literal[False] | None = None
        self._alike: bool | None = None
        self._roles: Counter[str] | None = None
        self._plain: PodTemplate | Literal[False] | None = None
        self.valid_under: object = None
        self.settled_under: object = None

    def in_uid_order(self) -> list[Task]:
        """Return the tasks by pod uid: the documented order of a job's tasks."""
        if self._sorted is None:
            self._sorted = [self.tasks[uid] for uid in sorted(self.tasks)]
        return self._sorted

    def one_template(self) -> PodTemplate | None:
        """Return the template that all tasks share; None where they have several, or there is no task."""
        if self._template is None:
            templates = {task.template.number: task.template for task in self.tasks.values()}
            self._template = next(iter(templates.values())) if len(templates) == 1 else False
        return self._template or None

    def plain_template(self) -> PodTemplate | None:
        """Return the template of all its tasks where these certainly are to be placed, as one group anywhere: none of
        them is gated, asks for devices or for nothing. None where something is otherwise.
        """
        plain = self._plain
        if plain is None:
            only, spec = self.one_template(), self.pod_group
            special = only is None or only.best_effort or only.resource_claims
            grouped = spec.sub_group_policy or spec.network_topology is not None
            gated = special or grouped or True in [task.gated for task in self.tasks.values()]
            plain = self._plain = only if only is not None and not gated else False
        return plain or None

    def is_uniform(self) -> bool:
        """Return whether its tasks differ in name and state alone: of one template, role and set of labels, and none is
        nominated. Their annotations may differ.
        """
        if self._alike is None:
            roles = {(task.role, task.nominated) for task in self.tasks.values()}
            first = next(iter(self.tasks.values())).labels if self.tasks else {}
            alike = all(task.labels is first or task.labels == first for task in self.tasks.values())
            self._alike = alike and len(roles) == 1 and not roles.pop()[1] and self.one_template() is not None
        return self._alike

    def roles(self) -> Counter[str]:
        """Return how many tasks each role has; the caller must not change it."""
        if self._roles is None:
            self._roles = Counter([task.role for task in self.tasks.values()])
        return self._roles

    def attach(self, spec: PodGroupSpec | None) -> None:
        """Take another PodGroup, or the same with another status."""
        self.spec = spec
        if spec is not None:
            self.pod_group = spec
        self._plain = self.valid_under = self.settled_under = None

    def put(self, task: Task) -> None:
        """Add a task or replace the one of its uid."""
        self.tasks[task.uid] = task
        self._forget()

    def drop(self, task: Task) -> None:
        """Remove a task."""
        self.tasks.pop(task.uid, None)
        self._forget()

    def _forget(self) -> None:
        self._sorted = self._template = self._alike = self._roles = self._plain = None
        self.valid_under = self.settled_under = None

    def copy(self, epoch: int) -> Job:
        """Return an equal job that may be changed."""
        twin = Job(self.row, self.key, epoch)
        if self.spec is not None:
            twin.spec = twin.pod_group = self.spec
        twin.tasks = dict(self.tasks)
        return twin


class JobTable:
    """Columns over job rows.

    `counts` int32 [status, job]; `best_effort` int32: pending tasks that ask for nothing; `gated` int32: gated tasks;
    `allocated`, `pending`, `total` float64 [dimension, job]: requests of allocated-class, of pending, and of all tasks,
    and the PodGroup's minResources; `serial` int64: another for each job that ever came;
    `min_member` int32; `phase` int8; `priority` int64; `created` float64; `queue`
    int32 queue row or NO_QUEUE; `reported` int32 [phase, running, succeeded, failed; job] and `announced` bool (has the
    Scheduled condition of a ready job): what the PodGroup's status says already.

    `ended_row`: the row of all jobs that no session can be concerned with any more; these are neither in order nor
    among the handles.
    """

    VECTORS = ("allocated", "pending", "total", "minimum")
    PLAIN = (
        "counts", "best_effort", "gated", "min_member", "phase", "priority", "queue", "has_spec", "has_min_resources",
        "reported",
        "announced",
        "has_topology",
        "created",
        "serial",
    )  # fmt: skip

    def __init__(self, dimensions: Dimensions) -> None:
        self.dimensions = dimensions
        self.rows = Rows()
        self.changed: set[int] = set()  # see core/state/kept_columns.py
        self.epoch = 0
        self.by_key: dict[str, Job] = {}
        self.handles: list[Job | None] = []
        self.keys: list[str] = []  # sorted, and the jobs' rows beside them
        self._rows_by_key: list[int] = []
        self._order: npt.NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._created = 0  # so many jobs, ever
        self._stale = 0  # so many jobs have come or gone since
        self._queued: npt.NDArray[np.intp] | None = None  # those that sessions have, in that order
        self.ended_row = NO_ROW
        self.queue_count = 0
        self.allocated: FloatArray = np.zeros((4, LEAST_ROOM))
        self.pending: FloatArray = np.zeros((4, LEAST_ROOM))
        self.total: FloatArray = np.zeros((4, LEAST_ROOM))
        self.minimum: FloatArray = np.zeros((4, LEAST_ROOM))
        self.counts: npt.NDArray[np.int32] = np.zeros((COUNT, LEAST_ROOM), dtype=np.int32)
        self.best_effort: npt.NDArray[np.int32] = np.zeros(LEAST_ROOM, dtype=np.int32)
        self.gated: npt.NDArray[np.int32] = np.zeros(LEAST_ROOM, dtype=np.int32)
        self.min_member: npt.NDArray[np.int32] = np.zeros(LEAST_ROOM, dtype=np.int32)
        self.phase: npt.NDArray[np.int8] = np.zeros(LEAST_ROOM, dtype=np.int8)
        self.priority: npt.NDArray[np.int64] = np.zeros(LEAST_ROOM, dtype=np.int64)
        self.created: FloatArray = np.zeros(LEAST_ROOM)
        self.serial: npt.NDArray[np.int64] = np.zeros(LEAST_ROOM, dtype=np.int64)
        self.queue: npt.NDArray[np.int32] = np.zeros(LEAST_ROOM, dtype=np.int32)
        self.reported: npt.NDArray[np.int32] = np.zeros((4, LEAST_ROOM), dtype=np.int32)
        self.announced: npt.NDArray[np.bool_] = np.zeros(LEAST_ROOM, dtype=np.bool_)
        self.has_topology: npt.NDArray[np.bool_] = np.zeros(LEAST_ROOM, dtype=np.bool_)
        self.has_spec: npt.NDArray[np.bool_] = np.zeros(LEAST_ROOM, dtype=np.bool_)
        self.has_min_resources: npt.NDArray[np.bool_] = np.zeros(LEAST_ROOM, dtype=np.bool_)
        self._by_number()

    def _by_number(self) -> None:
        """Make the columns that change most, by status or dimension, number by number."""
        self._current: tuple[tuple[int, int], Arrays] | None = None
        self._counts_at = [integers(line) for line in self.counts]
        self._best_effort_at, self._gated_at = integers(self.best_effort), integers(self.gated)
        self._allocated_at = [floats(line) for line in self.allocated]
        self._pending_at = [floats(line) for line in self.pending]
        self._reported_at = [integers(line) for line in self.reported]
        self._phase_at, self._announced_at = integers(self.phase), integers(self.announced)
        self._total_at = [floats(line) for line in self.total]

    def fit_dimensions(self) -> None:
        """Make room for every known dimension."""
        if len(self.dimensions) > self.allocated.shape[0]:
            for name in self.VECTORS:
                setattr(self, name, heightened(getattr(self, name), len(self.dimensions)))
            self._by_number()

    def writable(self, key: str) -> Job:
        """Return the job of that key, created when new, copied first when a snapshot has seen it."""
        job = self.by_key.get(key)
        if job is None:
            return self._create(key)
        # A snapshot has seen it: sessions keep the old one, unchanged.
        if job.epoch != self.epoch:
            job = self.by_key[key] = job.copy(self.epoch)
            if job.row != self.ended_row:
                self.handles[job.row] = job
                self.changed.add(job.row)
        return job

    def _take_row(self) -> int:
        row = self.rows.take()
        self.changed.add(row)
        if row >= len(self.handles):
            self.handles.append(None)
        if row >= len(self.phase):
            for name in (*self.VECTORS, *self.PLAIN):
                setattr(self, name, grown(getattr(self, name), row + 1))
            self._by_number()
        self.queue[row] = NO_QUEUE
        return row

    def _create(self, key: str) -> Job:
        row = self._take_row()
        job = self.by_key[key] = self.handles[row] = Job(row, key, self.epoch)
        # Kept sorted, so that a snapshot has the order of jobs at hand.
        self._created += 1
        self.serial[row] = self._created
        at = bisect_left(self.keys, key)
        self.keys.insert(at, key)
        self._rows_by_key.insert(at, row)
        self._stale += 1
        if self._stale <= FEW:
            self._order = np.concatenate((self._order[:at], (row,), self._order[at:]), dtype=np.intp)
        return job

    def in_key_order(self) -> npt.NDArray[np.intp]:
        """Return the rows of all jobs by "namespace/name", except those that are retired."""
        if self._stale > FEW:
            self._order = np.array(self._rows_by_key, dtype=np.intp)
        self._stale = 0
        return self._order

    def is_over(self, job: Job) -> bool:
        """Return whether the job has no PodGroup and all its tasks have ended."""
        if job.spec is not None or job.row == self.ended_row:
            return False
        return 0 < self._counts_at[SUCCEEDED][job.row] + self._counts_at[FAILED][job.row] == len(job.tasks)

    def retire(self, key: str) -> None:
        """Move a job to the row of ended jobs."""
        if self.ended_row == NO_ROW:
            self.ended_row = self._take_row()
        self.by_key[key] = Job(self.ended_row, key, self.epoch)

    def release_if_empty(self, job: Job) -> None:
        """Forget a job with neither PodGroup nor tasks."""
        if job.spec is not None or job.tasks:
            return
        del self.by_key[job.key]
        if job.row == self.ended_row:
            return
        for name in (*self.VECTORS, *self.PLAIN):
            getattr(self, name)[..., job.row] = 0
        self.handles[job.row] = None
        self.changed.add(job.row)
        self.rows.give_back(job.row)
        at = bisect_left(self.keys, job.key)
        del self.keys[at], self._rows_by_key[at]
        self._stale += 1
        if self._stale <= FEW:
            self._order = np.concatenate((self._order[:at], self._order[at + 1 :]))

    def set_spec(self, job: Job, spec: PodGroupSpec | None) -> None:
        """Attach or detach the PodGroup."""
        job.attach(spec)
        minimum = self.dimensions.items(spec.min_resources) if spec and spec.min_resources else ()
        self.fit_dimensions()
        row = job.row
        self.changed.add(row)
        self.has_spec[row] = spec is not None
        if spec is None:
            self.queue[row], self._queued = NO_QUEUE, None
            return
        self.min_member[row], self.created[row] = spec.min_member, spec.created
        self.has_topology[row] = spec.network_topology is not None or bool(spec.sub_group_policy)
        self.has_min_resources[row] = spec.min_resources is not None
        # A dimension that the PodGroup named before may be gone.
        self.minimum[:, row] = 0.0
        for dimension, value in minimum:
            self.minimum[dimension, row] = value
        self.set_status(job, spec)

    def set_status(self, job: Job, spec: PodGroupSpec) -> None:
        """Attach the same PodGroup with another status."""
        job.attach(spec)
        row = job.row
        self.changed.add(row)
        self._phase_at[row] = phase_of(spec.phase)
        self._announced_at[row] = READY in spec.conditions
        phase, running, succeeded, failed = self._reported_at
        phase[row] = BY_LABEL.get(spec.phase, NO_PHASE)
        running[row], succeeded[row], failed[row] = spec.running, spec.succeeded, spec.failed

    def place(self, job: Job, priority: int, queue: int) -> None:
        """Note the job's priority and the row of its queue."""
        row = job.row
        self.changed.add(row)
        if self.queue[row] != queue:
            self._queued = None
        self.priority[row], self.queue[row] = priority, queue

    def count(self, job: Job, task: Task, status: int, sign: int) -> None:
        """Add (sign 1) or remove (-1) a task of that status in counts and sums."""
        row, template = job.row, task.template
        self.changed.add(row)
        if task.gated:
            self._gated_at[row] += sign
        for dimension, value in template.items:
            self._total_at[dimension][row] += sign * value
        self._count_status(row, template, status, sign)

    def move(self, job: Job, task: Task, before: int, status: int) -> None:
        """Count a task whose status changed from `before`."""
        self.changed.add(job.row)
        # From one allocated status to another (Bound to Running) no sum changes.
        if IS_ALLOCATED[before] and IS_ALLOCATED[status]:
            self._counts_at[before][job.row] -= 1
            self._counts_at[status][job.row] += 1
            return
        self._count_status(job.row, task.template, before, -1)
        self._count_status(job.row, task.template, status, 1)

    def _count_status(self, row: int, template: PodTemplate, status: int, sign: int) -> None:
        self._counts_at[status][row] += sign
        pending = status == PENDING
        if pending and template.best_effort:
            self._best_effort_at[row] += sign
        columns = self._allocated_at if IS_ALLOCATED[status] else self._pending_at if pending else None
        if columns is not None:
            for dimension, value in template.items:
                columns[dimension][row] += sign * value

    def in_sessions(self) -> npt.NDArray[np.intp]:
        """Return the rows of the jobs with a PodGroup whose queue is known, in key order."""
        # The same array for all snapshots until a job comes or goes, or has another queue.
        if self._queued is None or self._stale:
            rows = self.in_key_order()
            self._queued = rows[self.queue[rows] != NO_QUEUE]
        return self._queued

    def shape(self) -> tuple[int, int]:
        """Return how many dimensions and rows a session has; those that are not used yet are as freed ones."""
        return len(self.dimensions), self.rows.room

    def current(self) -> tuple[Arrays, list[Job | None]]:
        """Return the columns that a session has, not copied, and the jobs."""
        height, count = shape = self.shape()
        if self._current is None or self._current[0] != shape:  # two dozen slices: a tenth of a small snapshot
            now: Arrays = {name: getattr(self, name)[:height, :count] for name in self.VECTORS}
            self._current = shape, now | {name: getattr(self, name)[..., :count] for name in self.PLAIN}
        return self._current[1], self.handles

    def derived_like(self, arrays: Arrays) -> Arrays:
        """Return room for what a session has beside them."""
        count = len(arrays["phase"])
        kinds = {"ready_tasks": np.int32, "readiness": np.int8, "known": np.bool_, "calm": np.bool_}
        return queue_sums.like(arrays) | {name: np.zeros(count, dtype=kind) for name, kind in kinds.items()}

    def derive(self, arrays: Arrays, at: slice | npt.NDArray[np.intp]) -> None:
        """Say whether a job is in the session, how many of its tasks are ready, whether these are enough, whether the
        job is calm, and what it adds to the sums of its queue.
        """
        counts, queue, least = arrays["counts"][:, at], arrays["queue"][at], arrays["min_member"][at]
        ready = total_of(counts, READY_STATUSES)
        arrays["ready_tasks"][at] = ready
        readiness = arrays["readiness"][at] = ready + arrays["best_effort"][at] >= least
        known = arrays["known"][at] = arrays["has_spec"][at] & (queue != NO_QUEUE)
        # Of few jobs it costs less to add up and to look at all of them.
        if calm_jobs.are_many(len(arrays["phase"])):
            shares = queue_sums.shares_of(arrays["allocated"][:, at], arrays["pending"][:, at], counts, known)
            queue_sums.update(arrays, at, shares, np.maximum(queue, 0), self.queue_count)
            told = arrays["phase"][at], *arrays["reported"][:, at]
            arrays["calm"][at] = calm_jobs.calm(counts, least, readiness & arrays["announced"][at], *told)
