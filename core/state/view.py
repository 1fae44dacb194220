"""The scheduler's own view of the cluster: API events in, snapshots out. One writer (the cache actor).

Event semantics follow Volcano's `pkg/scheduler/cache/event_handlers.go` (reference section 6.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pumice.core.devices.ascend.chips import memories
from pumice.core.devices.ascend.settings import chip_models
from pumice.core.devices.settings import device_config
from pumice.core.life.task import COMPLETED_STATUSES, STATUSES, TASK_LIFE, TaskTrigger
from pumice.core.objects.metadata import Object, key_of, object_key, section
from pumice.core.objects.node import read_node, renewed_node
from pumice.core.objects.pod import Task
from pumice.core.state.check import check_touched, check_view
from pumice.core.state.derived import Keeper, Material
from pumice.core.state.pod_reader import PodReader
from pumice.core.state.snapshot import Snapshot
from pumice.core.state.sources import LIMITS, NAMES
from pumice.core.state.tables import ViewTables
from pumice.core.state.tasks import NOWHERE
from pumice.core.state.touched import Touched
from pumice.core.state.volumes import READ_BY_CLAIMS, USUAL, VolumeRules, attachable_on

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.devices.ascend.settings import ChipModel
    from pumice.core.messages.decisions import BindContext
    from pumice.core.objects.node import NodeSpec
    from pumice.core.state.derived import Versions


class View(ViewTables):
    """Tasks, jobs, nodes and queues as the API last said, plus what is in flight (assumed binds, evictions).

    `version` rises with every change that could alter a decision.
    """

    def __init__(self, default_queue: str = "default") -> None:
        super().__init__(default_queue)
        self._pods = PodReader(self.templates)
        self._derived = Keeper()
        self._chip_models: tuple[ChipModel, ...] = ()
        self.uncounted: frozenset[str] = frozenset()

    # --- events ------------------------------------------------------------------------------------------------------

    def apply(self, event: str, obj: Object) -> None:
        """Take over a watch event: "ADDED", "MODIFIED", "DELETED". Raises QuantityError (then nothing changes)."""
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
        self._echoes.heard(heard)
        self.version += 1

    def _follow(self, kind: str, obj: Object) -> None:
        """An object that says what pods or nodes count as has come, changed or gone."""
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
        if known is not None and known.uid != task.uid:
            self._end_flight(key)
        if key in self._assumed and TASK_LIFE.step(task.status, TaskTrigger.ASSUME) is None:
            self._assumed.drop(key)  # the API knows by now
        if key in self._evicting and TASK_LIFE.step(task.status, TaskTrigger.EVICT) is None:
            self._evicting.discard(key)
        if known is not None and task.asks_as(known) and known.row not in self.tasks.aside.values():
            self._renew(known, task)
        else:
            if known is not None:
                self._take_out(known)
            self._put_in(task)
        if task.status in COMPLETED_STATUSES:
            self._lay_aside(task.job)

    def _renew(self, known: Task, task: Task) -> None:
        """The pod is in the same row of the same job: only what differs is counted anew."""
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
        renewed = None if row is None else renewed_node(self.nodes.specs[row], node)
        if row is not None and renewed is not None:
            self.nodes.renew(row, renewed)
            return
        self._see_node(row, node)

    def _see_node(self, row: int | None, node: Object) -> None:
        self.touched.everything = True
        name = section(node, "metadata").get("name") or ""
        csi_node = self.others.by_kind.get("CSINode", {}).get(name) if self._volumes.rules.counted else None
        spec = read_node(node, attachable_on(csi_node), self.uncounted)
        if self._chip_models:
            spec = self._with_chips(spec, csi_node)
        if row is not None:
            self.nodes.update(row, spec)
        else:
            self.residents.with_node(spec.name, self.nodes.add(spec))
        self._fit_dimensions()

    # --- volumes as a resource

    def count_volumes(self, rules: VolumeRules) -> None:
        """Count the volumes and resizes of pods, and the volumes of nodes, by these rules from now on."""
        if rules == self._volumes.rules:
            return
        self._count_resizes(rules.resized)
        self._volumes.rules = rules
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

    # --- devices whose memory is no resource (Volcano: GetIgnoredDevices)

    def _uncount_chips(self) -> None:
        """What the ConfigMap of NPUs says has changed, or where it is."""
        place = self._volumes.rules.chips
        said = self.others.by_kind.get("ConfigMap", {}).get(place)
        self._chip_models = chip_models(device_config(said)) if place else ()
        self._uncount(frozenset[str]().union(*(memories(spec, self._chip_models) for spec in self.nodes.specs)))

    def _with_chips(self, spec: NodeSpec, csi_node: Object | None) -> NodeSpec:
        self._uncount(memories(spec, self._chip_models))
        return read_node(spec.node, attachable_on(csi_node), self.uncounted)

    def _uncount(self, names: frozenset[str]) -> None:
        """Resources of these names count nothing from now on, wherever they are named."""
        if names <= self.uncounted:
            return
        self.uncounted |= names
        self.templates.uncount(names)
        self.groups.uncount(names)
        for known in list(self.tasks.by_key.values()):
            template = self.templates.lighter(known.template)
            if template is not known.template:
                self._take_out(known)
                self._put_in(replace(known, template=template))
        for row, spec in enumerate(self.nodes.specs):
            if not names.isdisjoint(spec.allocatable.scalars or ()):
                self._see_node(row, spec.node)

    def _with_volumes(self, task: Task) -> Task:
        """The task asking for its volumes, too; another one when it did not ask for just these."""
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
        """Whether a bind or an eviction of the pod is on its way."""
        key = key_of(namespace, name)
        return key in self._assumed or key in self._evicting

    def _known(self, namespace: str, name: str, uid: str | None) -> Task | None:
        task = self.tasks.by_key.get(key_of(namespace, name))
        return None if task is not None and uid is not None and task.uid != uid else task

    def _recount(self, task: Task) -> None:
        self._move(task)
        self._echoes.stirred = True
        self.version += 1

    def assume(
        self, namespace: str, name: str, node: str, pre_bind: BindContext | None = None, uid: str | None = None
    ) -> bool:
        """A bind is on its way: Binding on that node, be it there or not. False when the pod is placed or gone."""
        task = self._known(namespace, name, uid)
        if task is None or TASK_LIFE.step(STATUSES[self.tasks.status_at[task.row]], TaskTrigger.ASSUME) is None:
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
        if task is None or task.key in self._evicting or TASK_LIFE.step(task.status, TaskTrigger.EVICT) is None:
            return
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

    def snapshot(self, volumes: VolumeRules = USUAL) -> Snapshot:
        """Copies of the columns beside the shared specs; later events do not show in it. `volumes`: how they count."""
        self.count_volumes(volumes)
        self._recount_volumes(self._volumes.take_stale())
        moved = self.nodes.compact()
        used = self.tasks.rows.used
        if moved is not None:
            node = self.tasks.node[:used]
            placed = node != NOWHERE
            node[placed] = moved[node[placed]]
        nodes, queues, objects = self.nodes.columns(), self.groups.in_name_order(), self.others.share()
        dimensions = self.dimensions.copy()
        snapshot = Snapshot(
            version=self.version,
            dimensions=dimensions,
            tasks=self.tasks.columns(),
            nodes=nodes,
            jobs=self.jobs.columns(),
            queues=queues,
            node_tasks=self.residents.share(),
            objects=objects,
            promised=self._assumed.share(),
            derived=self._derived.lend(Material(nodes, queues, dimensions, objects), self._versions()),
        )
        self.jobs.epoch += 1
        self.touched = Touched(everything=moved is not None)
        return snapshot

    def _versions(self) -> Versions:
        own = {LIMITS: self.groups.limits_version, NAMES: len(self.dimensions)}
        return {**self.others.versions, **self.nodes.versions, **own}

    def check(self) -> list[str]:
        """Broken invariants, each named; empty when the view is whole."""
        return [*check_view(self), *self._assumed.check()]

    def check_touched(self) -> list[str]:
        """Broken invariants where anything has changed since the last snapshot, of a view that was whole then."""
        return [*check_touched(self), *self._assumed.check()]
