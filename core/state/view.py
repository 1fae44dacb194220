"""The scheduler's own view of the cluster: API events in, snapshots out. One writer (the cache actor).

Event semantics follow Volcano's `pkg/scheduler/cache/event_handlers.go` (reference section 6.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.life.task import PREEMPTABLE_STATUSES, TaskStatus
from core.objects.metadata import Object, key_of, object_key, section
from core.objects.node import read_node, renewed_node
from core.objects.pod import Task, TemplateTable
from core.state.assumed import Assumed
from core.state.check import check_touched, check_view
from core.state.derived import Keeper, Material
from core.state.dimensions import Dimensions
from core.state.groups import Groups
from core.state.jobs import JobTable
from core.state.nodes import NodeTable
from core.state.others import Others
from core.state.pod_reader import PodReader
from core.state.seats import Seats
from core.state.snapshot import Snapshot
from core.state.sources import LIMITS, NAMES
from core.state.tasks import NOWHERE, TaskTable
from core.state.touched import Touched

if TYPE_CHECKING:
    from core.messages.decisions import BindContext
    from core.objects.queue import Queue
    from core.state.derived import Versions

PENDING, BINDING, RELEASING = TaskStatus.PENDING, TaskStatus.BINDING, TaskStatus.RELEASING


class View:
    """Tasks, jobs, nodes and queues as the API last said, plus what is in flight (assumed binds, evictions).

    `version` rises with every change that could alter a decision.
    """

    def __init__(self, default_queue: str = "default") -> None:
        self.version = 0
        self.dimensions = Dimensions()
        self.templates = TemplateTable(self.dimensions)
        self._pods = PodReader(self.templates)
        self.tasks = TaskTable()
        self.jobs = JobTable(self.dimensions)
        self.nodes = NodeTable(self.dimensions)
        self.groups = Groups(self.jobs, default_queue)
        self.seats = Seats(self.tasks, self.nodes)
        self.others = Others()
        self.touched = Touched()  # since the last snapshot
        self._fitted = 0  # so many dimensions have room
        self._derived = Keeper()
        self._assumed = Assumed()  # binds in flight
        self._evicting: set[str] = set()  # pod keys of evictions in flight

    @property
    def node_tasks(self) -> dict[str, dict[str, Task]]:
        """Node name -> pod key -> task, nodes not yet seen included."""
        return self.seats.node_tasks

    @property
    def queues(self) -> dict[str, Queue]:
        """Queues by name."""
        return self.groups.queues

    # --- events ------------------------------------------------------------------------------------------------------

    def apply(self, event: str, obj: Object) -> None:
        """Take over a watch event: "ADDED", "MODIFIED", "DELETED". Raises QuantityError (then nothing changes)."""
        kind, deleted = obj.get("kind"), event == "DELETED"
        if kind == "Pod":
            self._apply_pod(obj, deleted)
        elif kind == "PodGroup":
            self.groups.apply_pod_group(obj, deleted)
            self._fit_dimensions()
        elif kind == "Node":
            self._apply_node(obj, deleted)
        elif kind == "Queue":
            self.groups.apply_queue(obj, deleted)
        elif kind == "PriorityClass":
            self.groups.apply_priority_class(obj, deleted)
        elif kind:
            self.others.apply(str(kind), obj, deleted=deleted)
        self.version += 1

    def _apply_pod(self, pod: Object, deleted: bool) -> None:
        key = object_key(pod)
        known = self.tasks.by_key.get(key)
        if deleted:
            self._end_flight(key)
            if known is not None:
                self._take_out(known)
            return
        task = self._pods.read(pod, known)
        if known is not None and known.uid != task.uid:
            self._end_flight(key)
        if task.status != PENDING:
            self._assumed.drop(key)  # the API knows by now
        if task.status not in PREEMPTABLE_STATUSES:
            self._evicting.discard(key)
        if known is not None and task.asks_as(known):
            self._renew(known, task)
            return
        if known is not None:
            self._take_out(known)
        self._put_in(task)

    def _end_flight(self, key: str) -> None:
        self._assumed.drop(key)
        self._evicting.discard(key)

    def _put_in(self, task: Task) -> None:
        task.row = self.tasks.take_row()
        self._fit_dimensions()
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
        self.tasks.release(task)

    def _effective(self, task: Task) -> tuple[TaskStatus, str]:
        """What the API said, overlaid with what is in flight."""
        if task.status == PENDING and task.key in self._assumed:
            return BINDING, self._assumed[task.key]
        if task.key in self._evicting and task.status in PREEMPTABLE_STATUSES:
            return RELEASING, task.node_name
        return task.status, task.node_name

    def _renew(self, known: Task, task: Task) -> None:
        """The pod is in the same row of the same job: only what differs is counted anew."""
        task.row = known.row
        self.tasks.renew(task)
        if task.job and task is not known:
            self.jobs.writable(task.job).put(task)
        self._move(task)

    def _enter(self, task: Task) -> None:
        """Count a task where it belongs: its job's columns and its node's."""
        self.touched.add(task)
        row = task.row
        status, node_name = self._effective(task)
        self.tasks.status_at[row] = status
        self.tasks.job_at[row] = NOWHERE
        if task.job:
            job = self.jobs.by_key[task.job]
            self.jobs.count(job, task, status, 1)
            self.tasks.job_at[row] = job.row
        self.seats.enter(task, status, node_name)

    def _leave(self, task: Task) -> None:
        """The reverse of :meth:`_enter`."""
        self.touched.add(task)
        status = self.tasks.status_at[task.row]
        if task.job:
            self.jobs.count(self.jobs.by_key[task.job], task, status, -1)
        self.seats.leave(task, status)

    def _move(self, task: Task) -> None:
        """Count a task that was counted in its row where it belongs by now."""
        self.touched.add(task)
        row = task.row
        before = self.tasks.status_at[row]
        status, node_name = self._effective(task)
        if task.job and status != before:
            self.jobs.move(self.jobs.by_key[task.job], task, before, status)
        self.tasks.status_at[row] = status
        self.seats.move(task, before, status, node_name)

    def _apply_node(self, node: Object, deleted: bool) -> None:
        name = section(node, "metadata").get("name") or ""
        row = self.nodes.row.get(name)
        if deleted:
            if row is not None:
                self.touched.everything = True
                self.seats.without_node(name, row)
                self.nodes.remove(name)
            return
        renewed = None if row is None else renewed_node(self.nodes.specs[row], node)
        if row is not None and renewed is not None:
            self.nodes.renew(row, renewed)
            return
        self.touched.everything = True
        spec = read_node(node)
        self.dimensions.items(spec.allocatable)
        self._fit_dimensions()
        if row is not None:
            self.nodes.update(row, spec)
            return
        self.seats.with_node(spec.name, self.nodes.add(spec))

    def _fit_dimensions(self) -> None:
        if len(self.dimensions.names) != self._fitted:
            self._fitted = len(self.dimensions.names)
            self.nodes.fit_dimensions()
            self.jobs.fit_dimensions()

    # --- what is in flight

    def in_flight(self, namespace: str, name: str) -> bool:
        """Whether a bind or an eviction of the pod is on its way."""
        key = key_of(namespace, name)
        return key in self._assumed or key in self._evicting

    def _known(self, namespace: str, name: str, uid: str | None) -> Task | None:
        task = self.tasks.by_key.get(key_of(namespace, name))
        return None if task is not None and uid is not None and task.uid != uid else task

    def _recount(self, task: Task) -> None:
        self._move(task)
        self.version += 1

    def assume(
        self, namespace: str, name: str, node: str, pre_bind: BindContext | None = None, uid: str | None = None
    ) -> bool:
        """A bind is on its way: Binding on that node, be it there or not. False when the pod is placed or gone."""
        task = self._known(namespace, name, uid)
        if task is None or self.tasks.status_at[task.row] != PENDING:
            return False
        self._assumed.hold(task.key, node, pre_bind)
        self._recount(task)
        return True

    def forget(self, namespace: str, name: str, uid: str | None = None) -> bool:
        """The bind failed: back to what the API last said. False when none of this pod was on its way."""
        task = self._known(namespace, name, uid)
        if task is None or task.key not in self._assumed:
            return False
        self._assumed.drop(task.key)
        self._recount(task)
        return True

    def evicting(self, namespace: str, name: str, uid: str | None = None) -> None:
        """An eviction is on its way: Releasing. Nothing happens to a pod of another `uid`."""
        task = self._known(namespace, name, uid)
        if task is not None and task.status in PREEMPTABLE_STATUSES and task.key not in self._evicting:
            self._evicting.add(task.key)
            self._recount(task)

    def unevict(self, namespace: str, name: str, uid: str | None = None) -> bool:
        """The eviction failed: back to what the API last said. False when none of this pod was on its way."""
        task = self._known(namespace, name, uid)
        if task is None or task.key not in self._evicting:
            return False
        self._evicting.discard(task.key)
        self._recount(task)
        return True

    # --- snapshots

    def snapshot(self) -> Snapshot:
        """Copies of the columns beside the shared specs; later events do not show in it."""
        moved = self.nodes.compact()
        used = self.tasks.rows.used
        if moved is not None:
            node = self.tasks.node[:used]
            placed = node != NOWHERE
            node[placed] = moved[node[placed]]
        nodes, queues, objects = self.nodes.columns(), self.groups.in_name_order(), self.others.share()
        snapshot = Snapshot(
            version=self.version,
            dimensions=self.dimensions,
            tasks=self.tasks.columns(),
            nodes=nodes,
            jobs=self.jobs.columns(),
            queues=queues,
            node_tasks=self.seats.share(),
            objects=objects,
            promised=self._assumed.share(),
            derived=self._derived.lend(Material(nodes, queues, self.dimensions, objects), self._versions()),
        )
        self.jobs.epoch += 1
        self.touched = Touched(everything=moved is not None)
        return snapshot

    def _versions(self) -> Versions:
        own = {LIMITS: self.groups.limits_version, NAMES: len(self.dimensions)}
        return {**self.others.versions, **self.nodes.versions, **own}

    def check(self) -> list[str]:
        """Broken invariants, each named; empty when the view is whole."""
        return check_view(self)

    def check_touched(self) -> list[str]:
        """The same where anything has changed since the last snapshot, of a view that was whole then."""
        return check_touched(self)
