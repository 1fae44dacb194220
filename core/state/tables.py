# SPDX-License-Identifier: Apache-2.0
"""The tables of the view, and their tasks: each task is counted with its job and on its node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pumice.core.life.task import COMPLETED_STATUSES, TASK_LIFE, TaskStatus, TaskTrigger
from pumice.core.objects.metadata import Object, key_of, object_key, section
from pumice.core.objects.pod import Task, TemplateTable
from pumice.core.objects.pod_group import PodGroupSpec, read_pod_group, renewed_pod_group
from pumice.core.objects.queue import Queue, is_counted, read_queue
from pumice.core.resources import Resource
from pumice.core.state.dimensions import Dimensions
from pumice.core.state.jobs import NO_QUEUE, JobTable
from pumice.core.state.no_op_cycles import ChangesSinceCycle, is_no_op
from pumice.core.state.nodes import NodeTable
from pumice.core.state.snapshot import AssumedPods, ResidentChanges
from pumice.core.state.sources import limits_of
from pumice.core.state.tasks import NOWHERE, TaskTable
from pumice.core.state.volumes import VolumeCounts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.messages.commands import CycleSaid
    from pumice.core.state.jobs import Job

# --- Touched parts


class Touched:
    """Changes since a snapshot. `rows` of tasks and `jobs` by key, each once, in the order in which they were touched
    first; `everything`: nodes came, went or changed their rows. Nodes whose tasks changed are `unshared` in
    `NodeTasks`.
    """

    __slots__ = ("everything", "jobs", "rows")

    def __init__(self, *, everything: bool = False) -> None:
        self.everything = everything
        self.rows: dict[int, None] = {}
        self.jobs: dict[str, None] = {}

    def add(self, task: Task) -> None:
        """Note that the task is counted elsewhere, or no more."""
        self.rows[task.row] = self.jobs[task.job] = None


# --- Groups

# --- Priority classes
# Source: Volcano `cache.Snapshot` (reference section 5.3).


class PriorityClasses:
    """Priority classes: name -> (value, True for the default of the cluster)."""

    def __init__(self) -> None:
        self._classes: dict[str, tuple[int, bool]] = {}

    def apply(self, obj: Object, *, deleted: bool) -> bool:
        """Apply one object, and return whether anything has changed."""
        name = section(obj, "metadata").get("name") or ""
        if deleted:
            return self._classes.pop(name, None) is not None
        known, told = self._classes.get(name), (int(obj.get("value") or 0), bool(obj.get("globalDefault")))
        self._classes[name] = told
        return told != known

    def value(self, name: str) -> int:
        """Return the class's value; for an unknown or no name the default class's, 0 without one."""
        if name in self._classes:
            return self._classes[name][0]
        return next((value for value, is_default in self._classes.values() if is_default), 0)


class Groups:
    """PodGroups and queues. Each event is applied as a whole or, with QuantityError, not at all.

    `limits_version` rises when queues come or go, or what limits one of them changes: their status does so in nearly
    every cycle, and a thousand queues are not to be gone through again for that.
    """

    def __init__(self, jobs: JobTable, default_queue: str) -> None:
        self.queues: dict[str, Queue] = {}
        self.limits_version = 0
        self._jobs = jobs
        self._default_queue = default_queue
        self._priorities = PriorityClasses()
        self._queue_rows: dict[str, int] = {}
        self._uncounted: frozenset[str] = frozenset()

    def in_name_order(self) -> list[Queue]:
        """Return the queues in name order; a job holds its queue's index."""
        return [self.queues[name] for name in self._queue_rows]

    def apply_pod_group(self, obj: Object, deleted: bool) -> str:
        """Apply a PodGroup: it makes a job, also of pods that had none. Return its key when only its status has
        changed, "" otherwise.
        """
        key = object_key(obj)
        known = self._jobs.by_key.get(key)
        if deleted:
            if known is not None:
                job = self._jobs.writable(key)
                self._jobs.set_spec(job, None)
                self._jobs.release_if_empty(job)
            return ""
        renewed = None if known is None or known.spec is None else renewed_pod_group(known.spec, obj)
        if renewed is not None:
            self._jobs.set_status(self._jobs.writable(key), renewed)
            return key
        spec = read_pod_group(obj, self._default_queue, self._uncounted)
        job = self._jobs.writable(key)
        self._jobs.set_spec(job, spec)
        self._resolve(job, spec)
        return ""

    def uncount(self, names: frozenset[str]) -> None:
        """Ignore resources of these names from now on."""
        self._uncounted |= names
        for key, known in list(self._jobs.by_key.items()):
            spec = known.spec
            asked = None if spec is None or spec.min_resources is None else spec.min_resources.scalars
            if spec is not None and not names.isdisjoint(asked or ()):
                renewed = read_pod_group(spec.pod_group, self._default_queue, self._uncounted)
                job = self._jobs.writable(key)
                self._jobs.set_spec(job, renewed)
                self._resolve(job, renewed)

    def apply_queue(self, obj: Object, deleted: bool) -> str | None:
        """Apply a queue: jobs find it when it comes, and lose it when it goes. Return its name when only the allocated
        has changed; None when only the counts of its status have; "" otherwise.
        """
        queue = read_queue(obj)
        known = self.queues.get(queue.name)
        changed = deleted or known is None
        if known is None or deleted or limits_of(known) != limits_of(queue):
            self.limits_version += 1
            for limit in limits_of(queue):
                if isinstance(limit, Resource):
                    self._jobs.dimensions.items(limit)  # a queue may be the first to name a scalar
        if deleted:
            self.queues.pop(queue.name, None)
        else:
            self.queues[queue.name] = queue
        if changed:
            # Rows are places in name order: a queue that comes or goes moves those of others.
            self._queue_rows = {name: row for row, name in enumerate(sorted(self.queues))}
            self._jobs.queue_count = len(self.queues)
            self._resolve_all()
        if known is None or deleted or not is_counted(known, queue):
            return ""
        return None if queue.allocated == known.allocated else queue.name

    def apply_priority_class(self, obj: Object, deleted: bool) -> None:
        """Apply a priority class: its value counts for every job that names it."""
        if self._priorities.apply(obj, deleted=deleted):
            self._resolve_all()

    def _resolve(self, job: Job, spec: PodGroupSpec) -> None:
        queue = self._queue_rows.get(spec.queue, NO_QUEUE)
        self._jobs.place(job, self._priorities.value(spec.priority_class), queue)

    def _resolve_all(self) -> None:
        for job in self._jobs.by_key.values():
            if job.spec is not None:
                self._resolve(job, job.spec)


# --- Tasks of nodes


LONGEST: Final = 1 << 16
"""Changes that are remembered, at least half of them: a session that skips snapshots need not look at every node."""


class NodeTasks:
    """Tasks by node. `node_tasks`: node name -> pod key -> task, nodes not yet seen included; a node's tasks in the
    order in which they last changed. A dict that a snapshot has seen is copied before it changes.
    """

    def __init__(self, tasks: TaskTable, nodes: NodeTable) -> None:
        self.node_tasks: dict[str, dict[str, Task]] = {}
        self._tasks = tasks
        self._nodes = nodes
        self.unshared: dict[str, None] = {}  # node names whose dict no snapshot has seen
        self._particular: dict[str, None] = {}  # those on which a pod that is not plain has changed
        self.changes, self.particular_changes = ResidentChanges(0, 0, []), ResidentChanges(0, 0, [])
        self._shared: dict[str, dict[str, Task]] = {}

    def share(self) -> dict[str, dict[str, Task]]:
        """Return the tasks for a snapshot, which must not change them. `changes` lists the later changes, and
        `particular_changes` those of pods that are not plain.
        """
        if self.unshared:
            self._shared = dict(self.node_tasks)
            self.changes = _logged(self.changes, self.unshared)
            self.particular_changes = _logged(self.particular_changes, self._particular)
        return self._shared

    def enter(self, task: Task, status: TaskStatus, node_name: str) -> None:
        """Count a task that is counted on no node."""
        row, tasks = task.row, self._tasks
        tasks.changed.add(row)
        tasks.node_at[row] = NOWHERE
        tasks.resides[row] = home = node_name if status not in COMPLETED_STATUSES else ""
        # Ended pods take no room on their node.
        if not home:
            return
        self._residents(home, task)[task.key] = task
        node = self._nodes.row.get(home)
        if node is not None:
            tasks.node_at[row] = node
            self._nodes.place(node, task.template, status, 1)

    def leave(self, task: Task, status: int) -> None:
        """Undo :meth:`enter`."""
        name = self._tasks.resides[task.row]
        if name:
            del self._residents(name, task)[task.key]
            self._tasks.resides[task.row] = ""
            node = self._tasks.node_at[task.row]
            if node != NOWHERE:
                self._nodes.place(node, task.template, status, -1)

    def move(self, task: Task, before: int, status: TaskStatus, node_name: str) -> None:
        """Move a task that was counted with status `before`: its request has not changed, its status or node may
        have.
        """
        name = self._tasks.resides[task.row]
        if name != (node_name if status not in COMPLETED_STATUSES else ""):
            self.leave(task, before)
            self.enter(task, status, node_name)
        elif name:
            self._stay(name, task, before, status)

    def _stay(self, name: str, task: Task, before: int, status: TaskStatus) -> None:
        residents = self._residents(name, task)
        del residents[task.key]  # the latest change comes last
        residents[task.key] = task
        node = self._tasks.node_at[task.row]
        if node != NOWHERE:
            self._nodes.restate(node, task.template, before, status)

    def with_node(self, name: str, row: int) -> None:
        """Count the tasks of a node that has come."""
        for task in self.node_tasks.get(name, {}).values():
            self._tasks.node_at[task.row] = row
            self._tasks.changed.add(task.row)
            self._nodes.place(row, task.template, self._tasks.status_at[task.row], 1)

    def without_node(self, name: str, row: int) -> None:
        """Remove a node that is about to go: its tasks stay counted on it by name, and the last node's row becomes
        `row`.
        """
        # Columns stay dense: NodeTable.remove moves the last row into the free one.
        last = self._nodes.count - 1
        for task in self.node_tasks.get(name, {}).values():
            self._tasks.node_at[task.row] = NOWHERE
        if row != last:
            for task in self.node_tasks.get(self._nodes.specs[last].name, {}).values():
                self._tasks.node_at[task.row] = row

    def _residents(self, node_name: str, changed: Task) -> dict[str, Task]:
        if not changed.template.plain:
            self._particular[node_name] = None
        # Copied once between two snapshots: the last one still reads the old dictionary.
        if node_name not in self.unshared:
            self.unshared[node_name] = None
            self.node_tasks[node_name] = dict(self.node_tasks.get(node_name, {}))
        return self.node_tasks[node_name]


def _logged(before: ResidentChanges, names: dict[str, None]) -> ResidentChanges:
    """Return the changes with those of these nodes, which are cleared."""
    if not names:
        return before
    log = before.log
    dropped = len(log) // 2 if len(log) > LONGEST else 0
    if dropped:
        log = log[dropped:]  # earlier snapshots keep their own
    log += names
    after = ResidentChanges(before.number + len(names), before.start + dropped, log)
    names.clear()
    return after


# --- Other objects


class OtherObjects:
    """Objects of all other kinds. `by_kind`: kind -> "namespace/name" (or name) -> object. A dict that a snapshot has
    seen is copied before it is changed. `versions`: by kind, how often it has changed.
    """

    def __init__(self) -> None:
        self.by_kind: dict[str, dict[str, Object]] = {}
        self.versions: dict[str, int] = {}
        self._unshared: set[str] = set()

    def share(self) -> dict[str, dict[str, Object]]:
        """Return the objects for a snapshot."""
        self._unshared.clear()
        return dict(self.by_kind)

    def apply(self, kind: str, obj: Object, *, deleted: bool) -> None:
        """Take over an object."""
        meta = section(obj, "metadata")
        name = meta.get("name") or ""
        key = key_of(meta["namespace"], name) if meta.get("namespace") else name
        # Copied once between two snapshots: the last one still reads the old dictionary.
        if kind not in self._unshared:
            self._unshared.add(kind)
            self.by_kind[kind] = dict(self.by_kind.get(kind, {}))
        self.versions[kind] = self.versions.get(kind, 0) + 1
        if deleted:
            self.by_kind[kind].pop(key, None)
        else:
            self.by_kind[kind][key] = obj


class ViewTables:
    """Enters and removes tasks in the tables of :class:`pumice.core.state.view.View`.

    A task is counted with its job and on its node in one call, so that no sum can miss it or have it twice.
    """

    def __init__(self, default_queue: str = "default") -> None:
        self.version: int = 0
        self.dimensions = Dimensions()
        self.templates = TemplateTable(self.dimensions)
        self.tasks = TaskTable()
        self.jobs = JobTable(self.dimensions)
        self.nodes = NodeTable(self.dimensions)
        self.groups = Groups(self.jobs, default_queue)
        self.residents = NodeTasks(self.tasks, self.nodes)
        self.others = OtherObjects()
        self._volumes = VolumeCounts(self.others.by_kind)
        self.touched = Touched()  # since the last snapshot
        self._fitted = 0  # so many dimensions have room
        self._assumed = AssumedPods()  # binds in flight
        self._evicting: set[str] = set()  # pod keys of evictions in flight
        self._changes_since_cycle = ChangesSinceCycle(stirred=True)

    @property
    def node_tasks(self) -> dict[str, dict[str, Task]]:
        """Return node name -> pod key -> task, nodes not yet seen included."""
        return self.residents.node_tasks

    @property
    def queues(self) -> dict[str, Queue]:
        """Return the queues by name."""
        return self.groups.queues

    @property
    def on_their_way(self) -> tuple[int, int]:
        """Return how many binds and evictions are on their way."""
        return len(self._assumed), len(self._evicting)

    def next_is_no_op(self, said: CycleSaid) -> bool:
        """Return whether only the cycle's own writes have come since the last call: another cycle would be a no-op."""
        # The next question is about what comes from now on.
        changes, self._changes_since_cycle = self._changes_since_cycle, ChangesSinceCycle()
        return is_no_op(self, changes, said)

    def _end_flight(self, key: str) -> None:
        self._assumed.drop(key)
        self._evicting.discard(key)

    def _put_in(self, task: Task) -> None:
        self._volumes.note(task)
        self._fit_dimensions()
        job = self.jobs.by_key.get(task.job)
        if job is not None and job.row == self.jobs.ended_row:
            if task.status in COMPLETED_STATUSES:
                self._retire_task(task)
                return
            self._take_back(job.key)
        task.row = self.tasks.take_row()
        self.tasks.by_key[task.key] = task
        self.tasks.handles[task.row] = task
        if task.job:
            self.jobs.writable(task.job).put(task)
        self._enter(task)

    def _take_out(self, task: Task) -> None:
        self._leave(task)
        if task.job:
            job = self.jobs.writable(task.job)
            job.drop(task)
            self.jobs.release_if_empty(job)
        self._volumes.drop(task)
        self.tasks.release(task)

    def _apply_pod_group(self, obj: Object, deleted: bool) -> str:
        key = object_key(obj)
        self._take_back(key)
        heard = self.groups.apply_pod_group(obj, deleted)
        self._fit_dimensions()
        self._retire_job(key)
        return heard

    def _retire_task(self, task: Task) -> None:
        job = self.jobs.writable(task.job)
        self.tasks.retire(task, task.status, job.row)
        job.put(task)
        self.jobs.count(job, task, task.status, 1)

    def _retire_job(self, key: str) -> None:
        """Retire a job whose PodGroup has gone and whose pods have ended: it is in no session, and takes no room in
        the columns that every session copies, until its PodGroup comes again or its last pod has gone.
        """
        job = self.jobs.by_key.get(key)
        if job is not None and self.jobs.is_over(job):
            tasks = list(job.tasks.values())
            self._take_all_out(tasks)
            self.jobs.retire(key)
            for task in tasks:
                self._put_in(replace(task))  # its row is known to snapshots

    def _take_back(self, key: str) -> None:
        """Take back a retired job that may be in a session again."""
        job = self.jobs.by_key.get(key)
        if job is not None and job.row == self.jobs.ended_row:
            tasks = list(job.tasks.values())
            self._take_all_out(tasks)
            for task in tasks:
                self._put_in(replace(task))

    def _take_all_out(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            self._take_out(task)

    def _effective(self, task: Task) -> tuple[TaskStatus, str]:
        """Return the effective status and node of a task: the API's, moved by the step that is on its way."""
        status, key = task.status, task.key
        if key in self._assumed and (assumed := TASK_LIFE.step(status, TaskTrigger.ASSUME)) is not None:
            return assumed, self._assumed[key]
        if key in self._evicting and (leaving := TASK_LIFE.step(status, TaskTrigger.EVICT)) is not None:
            return leaving, task.node_name
        return status, task.node_name

    def _enter(self, task: Task) -> None:
        """Count a task where it belongs: its job's columns and its node's."""
        self.touched.add(task)
        row = task.row
        self.tasks.changed.add(row)
        status, node_name = self._effective(task)
        self.tasks.status_at[row] = status
        self.tasks.job_at[row] = NOWHERE
        if task.job:
            job = self.jobs.by_key[task.job]
            self.jobs.count(job, task, status, 1)
            self.tasks.job_at[row] = job.row
        self.residents.enter(task, status, node_name)

    def _leave(self, task: Task) -> None:
        """Undo :meth:`_enter`."""
        self.touched.add(task)
        status = self.tasks.status_at[task.row]
        if task.job:
            self.jobs.count(self.jobs.by_key[task.job], task, status, -1)
        self.residents.leave(task, status)

    def _move(self, task: Task) -> None:
        """Count a task that was counted in its row where it belongs by now."""
        self.touched.add(task)
        row = task.row
        self.tasks.changed.add(row)
        before = self.tasks.status_at[row]
        status, node_name = self._effective(task)
        if task.job and status != before:
            self.jobs.move(self.jobs.by_key[task.job], task, before, status)
        self.tasks.status_at[row] = status
        self.residents.move(task, before, status, node_name)

    def _fit_dimensions(self) -> None:
        # This runs after every change of a pod, and new names of resources are rare.
        if len(self.dimensions.names) != self._fitted:
            self._fitted = len(self.dimensions.names)
            self.nodes.fit_dimensions()
            self.jobs.fit_dimensions()
