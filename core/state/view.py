# SPDX-License-Identifier: Apache-2.0
"""The scheduler's own view of the cluster: API events in, snapshots out. One writer (the cache actor).

Event semantics follow Volcano's `pkg/scheduler/cache/event_handlers.go` (reference section 6.2).
"""

from __future__ import annotations

from collections import OrderedDict
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pumice.core.devices.ascend.chips import memories
from pumice.core.devices.ascend.settings import chip_models
from pumice.core.devices.settings import device_config
from pumice.core.life.task import COMPLETED_STATUSES, COUNT, LABELS, STATUSES, TASK_LIFE, TaskStatus, TaskTrigger
from pumice.core.objects.metadata import Object, key_of, object_key, same_metadata, section
from pumice.core.objects.node import read_node, renewed_node
from pumice.core.objects.pod import Task, is_strange, read_state, read_task
from pumice.core.objects.pod_template import counted_spec
from pumice.core.resources import MIN_RESOURCE
from pumice.core.state.derived import Keeper, Material
from pumice.core.state.kept_columns import Copies, KeptColumns, Lease, copied
from pumice.core.state.snapshot import JobColumns, NodeColumns, Snapshot, TaskColumns
from pumice.core.state.sources import LIMITS, NAMES
from pumice.core.state.tables import Touched, ViewTables
from pumice.core.state.tasks import NOWHERE
from pumice.core.state.volumes import READ_BY_CLAIMS, USUAL, VolumeRules, attachable_on

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.devices.ascend.settings import ChipModel
    from pumice.core.messages.decisions import BindContext
    from pumice.core.objects.node import NodeSpec
    from pumice.core.objects.pod import TemplateTable
    from pumice.core.state.derived import Versions
    from pumice.core.state.jobs import Job

# --- Invariants
# Counts by status add up, idle + used = allocatable, no task is in two places.

RELEASING = int(TaskStatus.RELEASING)


def check_view(view: View) -> list[str]:
    """Return every broken invariant as a sentence."""
    tasks = view.tasks
    broken = [*_check_jobs(view, view.jobs.by_key.values()), *_check_nodes(view, range(view.nodes.count))]
    return [*broken, *_check_places(view, range(len(tasks.handles)))]


def check_touched(view: View) -> list[str]:
    """Return broken invariants among the rows touched since the last snapshot: the others were whole then, and still
    are.
    """
    touched, by_key, rows = view.touched, view.jobs.by_key, view.nodes.row
    if touched.everything:
        return check_view(view)
    jobs = [by_key[key] for key in touched.jobs if key in by_key]
    nodes = [rows[name] for name in view.residents.unshared if name in rows]
    return [*_check_jobs(view, jobs), *_check_nodes(view, nodes), *_check_places(view, touched.rows)]


def _check_jobs(view: View, jobs: Iterable[Job]) -> list[str]:
    broken: list[str] = []
    statuses, owners, columns = view.tasks.status_at, view.tasks.job_at, view.jobs.counts
    for job in jobs:
        if job.row == view.jobs.ended_row:
            continue  # it shares its columns
        counted = [0] * COUNT
        for task in job.tasks.values():
            counted[statuses[task.row]] += 1
            if owners[task.row] != job.row:
                broken.append(f"task {task.key} does not know its job {job.key}")
        column: list[int] = columns[:, job.row].tolist()
        if counted != column:
            broken += _miscounted(job.key, counted, column)
    return broken


def _miscounted(job: str, counted: list[int], columns: list[int]) -> list[str]:
    return [
        f"job {job}: {number} tasks are {LABELS[status]}, the column says {column}"
        for status, (number, column) in enumerate(zip(counted, columns, strict=True))
        if column != number
    ]


def _check_nodes(view: View, rows: Iterable[int]) -> list[str]:
    table = view.nodes
    broken: list[str] = []
    for row in rows:
        spec, at_row = table.specs[row], itemgetter(row)
        used, releasing = _by_tasks(view, view.node_tasks.get(spec.name, {}).values())
        idle = [has - taken for has, taken in zip(table.allocatable[:, row].tolist(), used, strict=True)]
        if spec.allocatable.scalars is None:
            idle[2:] = [0.0] * len(idle[2:])
        for what, lines, expected in (
            ("used", table.used_at, used),
            ("releasing", table.releasing_at, releasing),
            ("idle", table.idle_at, idle),
        ):
            says = list(map(at_row, lines))
            if says != expected and _differ(says, expected):
                broken.append(f"node {spec.name}: {what} is {says}, its tasks make it {expected}")
    return broken


def _differ(says: list[float], expected: list[float]) -> bool:
    return any(abs(one - other) >= MIN_RESOURCE for one, other in zip(says, expected, strict=True))


def _by_tasks(view: View, tasks: Iterable[Task]) -> tuple[list[float], list[float]]:
    """Return what the tasks of a node use, and release, added up anew, by dimension."""
    height, statuses = len(view.nodes.used_at), view.tasks.status_at
    used, releasing = [0.0] * height, [0.0] * height
    for task in tasks:
        for dimension, value in task.template.items:
            used[dimension] += value
        if statuses[task.row] == RELEASING:
            for dimension, value in task.template.items:
                releasing[dimension] += value
    return used, releasing


def _check_places(view: View, places: Iterable[int]) -> list[str]:
    tasks, rows, node_tasks = view.tasks, view.nodes.row, view.node_tasks
    broken: list[str] = []
    nodes, homes, handles = tasks.node_at, tasks.resides, tasks.handles
    for row in places:
        home, node = homes[row], nodes[row]
        if not home and node == NOWHERE:
            continue
        task = handles[row]
        if node != rows.get(home, NOWHERE):
            named = "" if node == NOWHERE else view.nodes.specs[node].name
            broken.append(f"task {_key(task)} is counted on {home} but its column says {named}")
        if home and (task is None or home not in node_tasks or task.key not in node_tasks[home]):
            broken.append(f"task {_key(task)} is not among the tasks of its node {home}")
    if len(tasks.by_key) != len(handles) - handles.count(None) + tasks.retired:
        broken.append(f"{len(tasks.by_key)} tasks by name are not those by row")
    return broken


def _key(task: Task | None) -> str:
    return task.key if task is not None else "that has gone"


# --- Reading pods
# Of a pod read lately, only what changes while it lives is read again. Reading all of it each time, a trace of small
# jobs (NASA's) takes 1.05 times as long on virtual time.

LATELY = 4096
"""Number of pods that are remembered: as many as the objects that the codec keeps decoded, so this alone keeps few."""


class PodReader:
    """Remembers the last pods as they were read, by key. An entry counts only for the very task that was made of it, so
    it cannot become stale. `resized`: pods that count for another amount than their spec's, by key; `counts_status`:
    whether they do (`pumice.core.objects.pod_template`).
    """

    def __init__(self, templates: TemplateTable) -> None:
        self._templates = templates
        self.counts_status = True
        self.resized: dict[str, Object] = {}
        self._lately: OrderedDict[str, tuple[Task, Object]] = OrderedDict()

    def read(self, pod: Object, known: Task | None) -> Task:
        """Return the pod's task; `known`: the last task of that key, which is returned when it was made of this very
        object.

        Raises QuantityError for a malformed request.
        """
        remembered = self._lately.get(known.key) if known is not None else None
        asks, was_resized = self._counted(pod)
        if known is None or remembered is None or remembered[0] is not known or asks is not None or was_resized:
            task = read_task(pod, NOWHERE, self._templates, asks if self.counts_status else None)
        elif pod is remembered[1]:
            task = known
        elif _asks_alike(remembered[1], pod):
            task = read_state(known, pod)
        else:
            task = read_task(pod, NOWHERE, self._templates)
        self._lately.pop(task.key, None)  # what is read now is the newest, whatever it was before
        self._lately[task.key] = (task, pod)
        if len(self._lately) > LATELY:
            self._lately.popitem(last=False)
        return task

    def gone(self, key: str) -> None:
        """Forget the pod: it is gone."""
        self.resized.pop(key, None)
        self._lately.pop(key, None)

    def _counted(self, pod: Object) -> tuple[Object | None, bool]:
        """Return the spec that counts if it is not the pod's own, and True if that is new."""
        key, asks = object_key(pod), counted_spec(pod)
        before = self.resized.pop(key, None)
        if asks is (pod.get("spec") or asks):
            return None, before is not None
        self.resized[key] = pod
        return asks, True


def _asks_alike(before: Object, pod: Object) -> bool:
    """Return whether the other is the same pod and asks for the same: only its state may differ."""
    asked, asks = before.get("spec"), pod.get("spec")
    return (asked is asks or _asks_as(asked or {}, asks or {})) and same_metadata(before, pod)


def _asks_as(asked: Object, asks: Object) -> bool:
    if is_strange(asked):  # with a node it is in its job
        return asked == asks
    return asked == asks or {**asked, "nodeName": asks.get("nodeName")} == asks


class View(ViewTables):
    """Holds tasks, jobs, nodes and queues by the API's last events, plus decisions in flight (assumed binds,
    evictions).

    The view is what the scheduler knows, never what it tries: a session works on a snapshot, and its decisions come
    back as assumptions, which an outcome confirms or takes back. So the next cycle counts room that is given away
    before the api shows it. `version` rises with every change that could alter a decision.
    """

    def __init__(self, default_queue: str = "default") -> None:
        super().__init__(default_queue)
        self._pods = PodReader(self.templates)
        self._derived = Keeper()
        self.kept = KeptColumns(self.tasks, self.nodes, self.jobs)
        self._rows_version = 0
        self._chip_models: tuple[ChipModel, ...] = ()
        self.uncounted: frozenset[str] = frozenset()

    # --- events ------------------------------------------------------------------------------------------------------

    def read_pod(self, pod: Object) -> Task:
        """Return the pod's task as `apply` would read it, uncounted. Raises QuantityError."""
        task = self._pods.read(pod, None)
        self._pods.gone(task.key)
        return task

    def apply(self, event: str, obj: Object) -> None:
        """Apply a watch event: "ADDED", "MODIFIED", "DELETED". Raises QuantityError (then nothing changes)."""
        kind, deleted = obj.get("kind"), event == "DELETED"
        heard: str | None = ""
        if kind == "Pod":
            self._apply_pod(obj, deleted)
        elif kind == "PodGroup":
            heard = self._apply_pod_group(obj, deleted)
        elif kind == "Node":
            self._apply_node(obj, deleted)
        elif kind == "Queue":
            heard = self.groups.apply_queue(obj, deleted)
            self._fit_dimensions()
        elif kind == "PriorityClass":
            self.groups.apply_priority_class(obj, deleted)
        elif kind:
            self.others.apply(str(kind), obj, deleted=deleted)
            self._follow(str(kind), obj)
        self._changes_since_cycle.note(heard)
        self.version += 1

    def _follow(self, kind: str, obj: Object) -> None:
        """Follow an object that determines the amounts of pods or nodes, and that has come, changed or gone."""
        if kind in READ_BY_CLAIMS:
            self._volumes.changed(kind, obj)
        elif kind == "CSINode":
            row = self.nodes.row.get(section(obj, "metadata").get("name") or "")
            if row is not None:
                self._see_node(row, self.nodes.specs[row].node)
        elif kind == "ConfigMap" and object_key(obj) == self._volumes.rules.chips:
            self._uncount_chips()

    def _apply_pod(self, pod: Object, deleted: bool) -> None:
        key = object_key(pod)
        known = self.tasks.by_key.get(key)
        if deleted:
            self._end_flight(key)
            self._pods.gone(key)
            if known is not None:
                self._take_out(known)
            return
        task = self._pods.read(pod, known)
        if task.template.volumes:
            task = self._with_volumes(task)
        # Another pod of the same name: what is in flight was about the old one.
        if known is not None and known.uid != task.uid:
            self._end_flight(key)
        if key in self._assumed and TASK_LIFE.step(task.status, TaskTrigger.ASSUME) is None:
            self._assumed.drop(key)  # the API knows by now
        if key in self._evicting and TASK_LIFE.step(task.status, TaskTrigger.EVICT) is None:
            self._evicting.discard(key)
        # A pod that asks for the same keeps its row: only its status and node are counted anew.
        if known is not None and task.asks_as(known) and known.row not in self.tasks.ended_rows.values():
            self._renew(known, task)
        else:
            if known is not None:
                self._take_out(known)
            self._put_in(task)
        # It may be the last pod of a job without a PodGroup.
        if task.status in COMPLETED_STATUSES:
            self._retire_job(task.job)

    def _renew(self, known: Task, task: Task) -> None:
        """Renew a pod in the same row of the same job: only differing parts are counted anew."""
        task.row = known.row
        self.tasks.renew(task)
        if task.job and task is not known:
            self.jobs.writable(task.job).put(task)
        self._move(task)

    def _apply_node(self, node: Object, deleted: bool) -> None:
        name = section(node, "metadata").get("name") or ""
        row = self.nodes.row.get(name)
        if deleted:
            if row is not None:
                self.touched.everything = True
                self.residents.without_node(name, row)
                self.nodes.remove(name)
            return
        # A heartbeat changes no column: only the specification is replaced.
        renewed = None if row is None else renewed_node(self.nodes.specs[row], node)
        if row is not None and renewed is not None:
            self.nodes.renew(row, renewed)
            return
        self._see_node(row, node)

    def _see_node(self, row: int | None, node: Object) -> None:
        self.touched.everything = True
        name = section(node, "metadata").get("name") or ""
        csi_node = self.others.by_kind.get("CSINode", {}).get(name) if self._volumes.rules.counted else None
        spec = self._read_node(node, csi_node)
        if self._chip_models:
            spec = self._with_chips(spec, csi_node)
        if row is not None:
            self.nodes.update(row, spec)
        else:
            self.residents.with_node(spec.name, self.nodes.add(spec))
        self._fit_dimensions()

    def _read_node(self, node: Object, csi_node: Object | None) -> NodeSpec:
        as_python = self._volumes.rules.as_python
        return read_node(node, attachable_on(csi_node), self.uncounted, as_python=as_python)

    # --- volumes as a resource

    def count_volumes(self, rules: VolumeRules) -> None:
        """Count the volumes and resizes of pods, and the volumes of nodes, by these rules from now on."""
        if rules == self._volumes.rules:
            return
        self._count_resizes(rules.resized)
        reread = rules.as_python != self._volumes.rules.as_python
        self._volumes.rules = rules
        if reread:
            for row, spec in enumerate(self.nodes.specs):
                self._see_node(row, spec.node)
        self._uncount_chips()
        self._recount_volumes(self._volumes.readers)
        for name in self.others.by_kind.get("CSINode", {}):
            if name in self.nodes.row:
                self._see_node(self.nodes.row[name], self.nodes.specs[self.nodes.row[name]].node)
        self.version += 1

    def _count_resizes(self, counts: bool) -> None:
        if counts != self._pods.counts_status:
            self._pods.counts_status = counts
            for pod in list(self._pods.resized.values()):
                self._apply_pod(pod, deleted=False)

    # --- devices whose memory is not counted as a resource (Volcano: GetIgnoredDevices)

    def _uncount_chips(self) -> None:
        """Apply the ConfigMap of NPUs after its content or place has changed: the chips' memory is not counted."""
        place = self._volumes.rules.chips
        said = self.others.by_kind.get("ConfigMap", {}).get(place)
        self._chip_models = chip_models(device_config(said)) if place else ()
        self._uncount(frozenset[str]().union(*(memories(spec, self._chip_models) for spec in self.nodes.specs)))

    def _with_chips(self, spec: NodeSpec, csi_node: Object | None) -> NodeSpec:
        self._uncount(memories(spec, self._chip_models))
        return self._read_node(spec.node, csi_node)

    def _uncount(self, names: frozenset[str]) -> None:
        """Ignore resources of these names from now on, wherever they are named."""
        # Names join and never leave, so mostly there is nothing to do.
        if names <= self.uncounted:
            return
        self.uncounted |= names
        self.templates.uncount(names)
        self.groups.uncount(names)
        # A list, since the loop takes tasks out and puts them in again.
        for known in list(self.tasks.by_key.values()):
            template = self.templates.lighter(known.template)
            if template is not known.template:
                self._take_out(known)
                self._put_in(replace(known, template=template))
        for row, spec in enumerate(self.nodes.specs):
            if not names.isdisjoint(spec.allocatable.scalars or ()):
                self._see_node(row, spec.node)

    def _with_volumes(self, task: Task) -> Task:
        """Return the task with the requests of its volumes; another one when its requests differed."""
        template = self.templates.asking_for(task.template, self._volumes.of_task(task))
        return task if template is task.template else replace(task, template=template)

    def _recount_volumes(self, pods: Iterable[str]) -> None:
        for known in [self.tasks.by_key[key] for key in pods]:
            task = self._with_volumes(known)
            if task is not known:
                self._take_out(known)
                self._put_in(task)

    # --- what is in flight

    def in_flight(self, namespace: str, name: str) -> bool:
        """Return whether a bind or an eviction of the pod is on its way."""
        key = key_of(namespace, name)
        return key in self._assumed or key in self._evicting

    def _known(self, namespace: str, name: str, uid: str | None) -> Task | None:
        task = self.tasks.by_key.get(key_of(namespace, name))
        return None if task is not None and uid is not None and task.uid != uid else task

    def _recount(self, task: Task) -> None:
        self._move(task)
        self._changes_since_cycle.stirred = True
        self.version += 1

    def assume(
        self, namespace: str, name: str, node: str, pre_bind: BindContext | None = None, uid: str | None = None
    ) -> bool:
        """Note that a bind is in flight: Binding on that node, which need not exist. False when the pod is placed or
        gone.
        """
        task = self._known(namespace, name, uid)
        if task is None or TASK_LIFE.step(STATUSES[self.tasks.status_at[task.row]], TaskTrigger.ASSUME) is None:
            return False
        self._assumed.hold(task.key, node, pre_bind)
        self._recount(task)
        return True

    def forget(self, namespace: str, name: str, uid: str | None = None) -> bool:
        """Note that the bind failed: return to the API's last state. False when no bind of this pod was in flight."""
        task = self._known(namespace, name, uid)
        if task is None or task.key not in self._assumed:
            return False
        self._assumed.drop(task.key)
        self._recount(task)
        return True

    def evicting(self, namespace: str, name: str, uid: str | None = None) -> None:
        """Note that an eviction is in flight: Releasing. A pod of another `uid` is left alone."""
        task = self._known(namespace, name, uid)
        if task is None or task.key in self._evicting or TASK_LIFE.step(task.status, TaskTrigger.EVICT) is None:
            return
        self._evicting.add(task.key)
        self._recount(task)

    def unevict(self, namespace: str, name: str, uid: str | None = None) -> bool:
        """Note that the eviction failed: return to the API's last state. False when no eviction of this pod was in
        flight.
        """
        task = self._known(namespace, name, uid)
        if task is None or task.key not in self._evicting:
            return False
        self._evicting.discard(task.key)
        self._recount(task)
        return True

    # --- snapshots

    def snapshot(self, volumes: VolumeRules = USUAL, *, kept: bool = False, checks: bool = False) -> Snapshot:
        """Return copies of the columns beside the shared specs; later events do not show in it. `volumes`: how they
        count.
        `kept`: the copies are brought up to date from those of an earlier session (core/state/kept_columns.py), and may
        be read until the second `kept` snapshot after this one; `checks`: compare them with copies.
        """
        self.count_volumes(volumes)
        # Before columns are copied: claims that came or changed since count from this snapshot on.
        self._recount_volumes(self._volumes.take_stale())
        # Every snapshot has its rows in name order: sessions break ties by row.
        moved = self.nodes.compact()
        used = self.tasks.rows.used
        if moved is not None:
            node = self.tasks.node[:used]
            # Tasks follow the rows of their nodes.
            placed = node != NOWHERE
            node[placed] = moved[node[placed]]
        self.kept.note(moved=self.nodes.rows_version != self._rows_version)
        self._rows_version = self.nodes.rows_version
        lease = self.kept.lend(checks=checks) if kept else None
        copies = lease or Lease(copied(self.tasks), copied(self.nodes), copied(self.jobs))
        nodes = self._node_columns(copies.nodes)
        queues, objects, dimensions = self.groups.in_name_order(), self.others.share(), self.dimensions.copy()
        snapshot = Snapshot(
            version=self.version,
            dimensions=dimensions,
            tasks=TaskColumns(handles=copies.tasks.handles, **copies.tasks.arrays),
            nodes=nodes,
            jobs=JobColumns(
                handles=copies.jobs.handles,
                order=self.jobs.in_sessions(),
                **copies.jobs.arrays,
            ),
            queues=queues,
            node_tasks=self.residents.share(),
            residents=self.residents.changes,
            particular=self.residents.particular_changes,
            objects=objects,
            promised=self._assumed.share(),
            derived=self._derived.lend(Material(nodes, queues, dimensions, objects), self._versions()),
            lease=lease,
        )
        # This snapshot has seen the jobs: from here on they are copied before they change.
        self.jobs.epoch += 1
        # Rows that moved concern every task: the next check looks at all of them.
        self.touched = Touched(everything=moved is not None)
        return snapshot

    def _node_columns(self, copies: Copies) -> NodeColumns:
        names, row, arrival = self.nodes.listing()
        return NodeColumns(names, copies.handles, row, arrival, **copies.arrays)

    def _versions(self) -> Versions:
        own = {LIMITS: self.groups.limits_version, NAMES: len(self.dimensions)}
        return {**self.others.versions, **self.nodes.versions, **own}

    def check(self) -> list[str]:
        """Return broken invariants, each named; empty when the view is whole."""
        return [*check_view(self), *self._assumed.check()]

    def check_touched(self) -> list[str]:
        """Return broken invariants where anything has changed since the last snapshot, of a view that was whole
        then.
        """
        return [*check_touched(self), *self._assumed.check()]
