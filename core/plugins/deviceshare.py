"""deviceshare: cards that pods share. Source: Volcano `plugins/deviceshare`, `plugins/predicates` (AllocateFunc)."""

from __future__ import annotations

from math import floor
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pumice.config.arguments import INTEGER, LIST, MAPPING, SWITCH, Argument, ArgumentKind
from pumice.core.devices import ascend, gpushare, vgpu
from pumice.core.devices.ascend import CORE, MindClusterNpu, NpuFrame, Reports, Resident, npu_node, shares
from pumice.core.devices.family import DeviceError
from pumice.core.devices.locks import NodeLocks
from pumice.core.devices.settings import CONFIG_MAP, HAMI, NAMESPACE, config_map_of, device_config
from pumice.core.devices.vgpu import read_rules
from pumice.core.life.task import ALLOCATED_STATUSES, TaskStatus
from pumice.core.messages.decisions import BindContext
from pumice.core.plugins.plugin import BuiltInPlugin, KnowsDevices
from pumice.core.session.points.nodes import Reads
from pumice.core.session.points.ready import RowsCheck, RowsScore
from pumice.core.session.reasons import Code, Reason
from pumice.core.state.derived import derived
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from pumice.core.devices.ascend import ChipModel, Chips
    from pumice.core.devices.family import Family, Notes
    from pumice.core.devices.gpushare import Cards
    from pumice.core.devices.vgpu import Rules, VgpuCards, VgpuSettings
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import FloatArray, Rows
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.session import Session
    from pumice.core.state.sources import NodeSpecs

# --- Assignments
# Volcano counts what a pod's annotations say when its node gets or loses it, and assigns devices in the event
# handlers of the plugin predicates, once its own reservations are made: without that plugin nothing is assigned. An
# eviction that is undone counts the pod again and assigns nothing. Source: Volcano `api/node_info.go` (AddTask,
# RemoveTask), `plugins/predicates` (AllocateFunc, DeallocateFunc).

ASSIGNER: Final = "predicates"
KEPT: Final = "terminating-pods-keep-cards"
UNCOUNTED: Final = (TaskStatus.RELEASING, TaskStatus.PIPELINED)
BACK: Final = (TaskStatus.RUNNING, TaskStatus.BOUND)


class Assignments:
    """`written`: what pods ("namespace/name") were given in this session, without what was taken back."""

    def __init__(self, session: Session, families: Sequence[Family], locks: NodeLocks | None = None) -> None:
        self._session, self._families, self._locks = session, families, locks
        self._assigns = session.config.plugin(ASSIGNER) is not None
        self._notes: dict[int, Notes] = {}  # task row -> its annotations as the session has them
        self._counted: set[int] = set()  # rows of tasks that were placed, and not only promised room
        self.written: dict[str, Notes] = {}
        self._count_residents()

    def _count_residents(self) -> None:
        snapshot, nodes = self._session.snapshot, self._session.nodes
        uncounted = (TaskStatus.PIPELINED,) if KEPT in self._session.config.pumice.fix else UNCOUNTED
        for family in self._families:
            for row in family.present.nonzero()[0].tolist():
                for task in snapshot.node_tasks.get(nodes.names[row], {}).values():
                    leaves = nodes.seen_status[task.row] in uncounted
                    family.resident(row, task, snapshot.annotations_of(task), leaves=leaves)

    def _of(self, task: Task, row: int) -> list[Family]:
        return [each for each in self._families if each.present[row] and each.concerns(task)]

    def _notes_of(self, task: Task) -> Notes:
        found = self._notes.get(task.row)
        if found is None:
            found = self._notes[task.row] = dict(self._session.snapshot.annotations_of(task))
        return found

    # --- as pods come and go

    def allocate(self, task: Task, node: int) -> str | None:
        """A pod was put on a node. A text: it cannot have what it asks for."""
        families = self._of(task, node)
        if not families:
            return None
        status = self._session.jobs.status[task.row]
        if status not in UNCOUNTED:
            # Remembered, since a pod that is only promised room counts nothing and must not be taken off.
            self._counted.add(task.row)
            for family in families:
                family.add(node, task, self._session.snapshot.annotations_of(task))
        if not self._assigns or status in BACK:
            return None
        return self._assign(task, node, families)

    def _assign(self, task: Task, row: int, families: Sequence[Family]) -> str | None:
        for family in families:
            try:
                said = family.assign(row, task, self._notes_of(task), self._session.clock.now)
            except DeviceError as error:
                # The lock in the way runs out at a known moment: the session is to look again then.
                if self._locks is not None and self._locks.earliest is not None:
                    self._session.wake(self._locks.earliest)
                return str(error)
            self.written.setdefault(task.key, {}).update(said)
        return None

    def deallocate(self, task: Task, node: int) -> str | None:
        """A pod was taken off a node, or is to be evicted."""
        families = self._of(task, node)
        if not families:
            return None
        evicted = self._session.jobs.status[task.row] == TaskStatus.RELEASING
        if evicted or task.row in self._counted:
            self._counted.discard(task.row)
            for family in families:
                family.remove(node, task, self._session.snapshot.annotations_of(task))
        for family in families if self._assigns else ():
            for name in family.release(node, task, self._notes_of(task)):
                self._notes_of(task).pop(name, None)
                self.written.get(task.key, {}).pop(name, None)
        return None

    def owned(self) -> Iterator[tuple[Task, dict[str, float]]]:
        """(task, what its devices amount to) of the allocated ones, in milli-units by resource."""
        jobs, snapshot = self._session.jobs, self._session.snapshot
        for job in jobs.in_order:
            for status in ALLOCATED_STATUSES:
                for task in jobs.tasks_in(job, status):
                    if jobs.node[task.row] < 0:  # its node is gone
                        continue
                    for family in self._of(task, jobs.node[task.row]):
                        amounts = family.owned(jobs.node[task.row], snapshot.annotations_of(task))
                        if amounts:
                            yield task, amounts

    def bind_context(self, task: Task) -> BindContext | None:
        """Return what the bind writes on the pod, and the locks that it sets on the node."""
        said = self.written.get(task.key)
        if not said:
            return None
        locks = () if self._locks is None else self._locks.of(self._session.jobs.node[task.row], task.uid)
        return BindContext(annotations=tuple(sorted(said.items())), locks=locks)


# --- MindCluster's NPUs
# Source: Volcano `plugins/deviceshare/devices/ascend/310p/vnpu`.

SETTINGS: Final = "init-params"
_ON: Final = ArgumentKind("true or false", lambda said: said in (None, True, "true"))
_OFF: Final = ArgumentKind("true or false", lambda said: said in (True, "true"))
BY_CLUSTER: Final = Argument("useClusterInfoManager", _ON, True, "Whether the reports that ClusterD gathers count.")
OWN_LIST: Final = Argument("self-maintain-available-card", _ON, True, "Whether free chips are told by the pods there.")
PRESET: Final = Argument("presetVirtualDevice", _OFF, False, "Whether parts of chips are cut beforehand.")
CHIPS_ONCE: Final = "npu-chips-once"
HIGH: Final = 8.0
LEAVING: Final = (TaskStatus.RELEASING, TaskStatus.PIPELINED)


def mindcluster(session: Session) -> MindClusterNpu:
    """The NPUs of a session's nodes, with the parts of them that pods have."""
    said = session.config.configurations.get(SETTINGS, {})
    by_cluster, own_list, preset = (setting.of(said) for setting in (BY_CLUSTER, OWN_LIST, PRESET))
    reports, nodes = Reports(session.objects.get("ConfigMap", {}), cluster=by_cluster), session.nodes
    found = [
        npu_node(spec, reports.of(spec.name), _residents(session, row), own_list=own_list)
        for row, spec in enumerate(nodes.specs)
    ]
    there = zip(found, nodes.specs, strict=True)
    counted = [node.status is not None and CORE in (spec.allocatable.scalars or ()) for node, spec in there]
    known = CORE in session.dims.names
    idle: FloatArray = nodes.idle[session.dims.index(CORE)] if known else np.zeros(nodes.count)
    frame = NpuFrame(by_cluster, own_list, preset, int(session.clock.now))
    once = CHIPS_ONCE in session.config.pumice.fix
    return MindClusterNpu(nodes.names, found, idle, np.array(counted, dtype=np.bool_), frame, once=once)


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
    """Scores nodes by MindCluster's NPUs. Every pod is scored, also one that asks for no NPUs."""

    name = "deviceshare"

    def __init__(self, family: MindClusterNpu, weight: int) -> None:
        self._family, self._weight = family, weight
        self.reads = Reads(kind=family.kind)

    def prepare(self, session: Session, task: Task) -> NpuScore | None:
        """Return what scores nodes for the task (PreScore)."""
        return NpuScore(self._family, task, self._weight)


# --- Arguments

SLICES_ONCE: Final = "mig-slices-once"
OVERFULL_IS_FULL: Final = "overfull-cards-are-full"
LIKES_UNUSED: Final = "hami-spread-likes-unused"
KEEPS_LOCK: Final = "hami-lock-key"


class Switches(NamedTuple):
    """The kinds of devices that count, how cards are chosen, and where the ConfigMap of devices is."""

    gpu_memory: bool
    gpu_number: bool
    vgpu: bool
    mindcluster: bool
    hami: bool
    policy: str
    config_map: str
    rules: Rules


@derived(NODES)
def shared_cards(nodes: NodeSpecs) -> Cards:
    """The cards that are shared by memory or number."""
    return gpushare.cards_of(nodes.specs)


@derived(NODES)
def virtual_cards(nodes: NodeSpecs, settings: VgpuSettings) -> VgpuCards:
    """The cards of virtual GPUs."""
    return vgpu.cards_of(nodes.specs, settings)


@derived(NODES)
def chips(nodes: NodeSpecs, model: ChipModel) -> Chips:
    """The chips of a model of NPUs."""
    return ascend.chips_of(nodes.specs, model)


def families_of(session: Session, switches: Switches) -> list[Family]:
    """In the order in which Volcano registers them."""
    found: list[Family] = []
    names, fixes = session.nodes.names, session.config.pumice.fix
    config = device_config(session.objects.get("ConfigMap", {}).get(switches.config_map))
    if switches.gpu_memory or switches.gpu_number:
        cards = shared_cards(session.nodes)
        found.append(
            gpushare.GpuShare(
                names,
                cards,
                by_memory=switches.gpu_memory,
                by_number=switches.gpu_number,
                overfull_is_full=OVERFULL_IS_FULL in fixes,
            )
        )
    if switches.vgpu:
        settings = vgpu.settings_of(None if config is None else config.get("nvidia") or {})
        found.append(
            vgpu.Vgpu(
                names,
                virtual_cards(session.nodes, settings),
                settings,
                switches.policy,
                switches.rules,
                once=SLICES_ONCE in fixes,
            )
        )
    if switches.mindcluster:
        found.append(mindcluster(session))
    return [*found, *_hami(session, switches, ascend.chip_models(config) if switches.hami else ())]


def _hami(session: Session, switches: Switches, models: Sequence[ChipModel]) -> list[Family]:
    names, fixes = session.nodes.names, session.config.pumice.fix
    return [
        ascend.HamiNpu(
            names,
            chips(session.nodes, model),
            model,
            models,
            switches.policy,
            likes_unused=LIKES_UNUSED in fixes,
            keeps_lock=KEEPS_LOCK in fixes,
        )
        for model in models
    ]


# --- Filter and scorer

NAME: Final = "deviceshare"


class DeviceCheck(RowsCheck):
    """The filter for one task: of several kinds of devices the first that does not suffice is named."""

    def __init__(self, session: Session, families: Sequence[Family], task: Task) -> None:
        self._session, self._families, self._task = session, families, task
        self._rows = np.arange(session.nodes.count)

    def reject(self, rows: Rows, /) -> IntArray:
        """Reason number per row (`Session.reasons`), 0 where the node passes."""
        asked = self._rows[rows]
        if self._session.points.unforeseeable:
            self._note(rows)
        codes = np.zeros(len(asked), dtype=np.int32)
        for family in self._families:
            lacks = family.present[rows] & ~family.fitting(self._task, rows)
            places = (lacks & (codes == 0)).nonzero()[0]
            # One text for all nodes: it is interned once.
            if family.uniform and len(places):
                codes[places] = self._code(family, int(asked[places[0]]))
            else:
                codes[places] = [self._code(family, row) for row in asked[places].tolist()]
        return codes

    def reject_one(self, row: int, /) -> int:
        """Reason number of one row: what each family says of the node, as in `reject`. It is asked for every node that
        something is placed on; without this and `score_one`, through columns of one, an allocation of cards takes 1.2
        times as long (`bench cards`).
        """
        if self._session.points.unforeseeable:
            self._note(slice(row, row + 1))
        for family in self._families:
            if family.present[row] and not family.fits(self._task, row):
                return self._code(family, row)
        return 0

    def _note(self, rows: Rows) -> None:
        """The scores may go to a process outside."""
        for family in self._families:
            family.note_scores(self._task, rows)

    def _code(self, family: Family, row: int) -> int:
        text, is_error = family.refusal(self._task, row)
        return self._session.reasons.intern(Reason(NAME, Code.ERROR if is_error else Code.UNSCHEDULABLE, text))


class DeviceScore(RowsScore):
    """The scores for one task: the nodes' own, rounded, times the weight."""

    def __init__(self, families: Sequence[Family], task: Task, weight: int) -> None:
        self._families, self._task, self._weight = families, task, weight

    def score(self, rows: Rows, /) -> FloatArray:
        """Raw score per row, shape [len(rows)]."""
        total = self._families[0].scores(self._task, rows)
        for family in self._families[1:]:
            total = total + family.scores(self._task, rows)
        # Halves go up, as Go's math.Round has it of numbers that are not negative.
        scores: FloatArray = np.floor(total + 0.5) * self._weight
        return scores

    def score_one(self, row: int, /) -> float:
        """Score of one row, found in the same way as by `DeviceCheck.reject_one`."""
        total = sum([family.score(self._task, row) for family in self._families])
        return floor(total + 0.5) * float(self._weight)


class Looking:
    """The common part of filter and scorer; `weight`: of the scores."""

    name = NAME

    def __init__(self, families: Sequence[Family], weight: int = 0) -> None:
        self._families, self._weight = families, weight
        self.reads = Reads(kind=self._kind)

    def _kind(self, task: Task) -> Hashable:
        return tuple([family.kind(task) for family in self.concerned(task)])

    def concerned(self, task: Task) -> list[Family]:
        """The kinds of devices that a pod asks for."""
        return [family for family in self._families if family.concerns(task)]


class DeviceFilter(Looking):
    """Passes the nodes that have the devices a pod asks for."""

    def prepare(self, session: Session, task: Task) -> DeviceCheck | None:
        """None: the pod asks for no devices."""
        families = self.concerned(task)
        return DeviceCheck(session, families, task) if families else None


class DeviceScorer(Looking):
    """Scores how well nodes' devices would be used."""

    def prepare(self, session: Session, task: Task) -> DeviceScore | None:
        """None: the pod asks for no devices."""
        families = self.concerned(task)
        return DeviceScore(families, task, self._weight) if families else None


# --- Dry runs
# Source: Volcano `plugins/predicates` (SimulatePredicate), `api/node_info.go`.


class DeviceTrials:
    """The plugin's part in a trial: the trial's `state` has the node's devices as the trial leaves them."""

    def __init__(self, session: Session, families: Sequence[Family]) -> None:
        self._session, self._families = session, families

    def _devices(self, state: dict[str, Any], preemptor: Task, row: int) -> list[Family]:
        devices: list[Family] | None = state.get(NAME)
        if devices is None:
            # Only what the preemptor asks for is copied.
            concerned = [each for each in self._families if each.present[row] and each.concerns(preemptor)]
            devices = state[NAME] = [each.trial(row) for each in concerned]
        return devices

    def is_quiet(self, preemptor: Task) -> bool:
        """Return whether the preemptor asks for no devices."""
        return not any(each.concerns(preemptor) for each in self._families)

    def add(self, state: dict[str, Any], preemptor: Task, task: Task, node: int) -> str | None:
        """The task is back on the node."""
        for each in self._devices(state, preemptor, node):
            each.add(0, task, self._session.snapshot.annotations_of(task))
        return None

    def remove(self, state: dict[str, Any], preemptor: Task, task: Task, node: int) -> str | None:
        """The task is gone from the node."""
        for each in self._devices(state, preemptor, node):
            each.remove(0, task, self._session.snapshot.annotations_of(task))
        return None

    def predicate(self, state: dict[str, Any], preemptor: Task, node: int) -> str | None:
        """Return why the node lacks what the preemptor asks for as the trial stands; None when it does not."""
        for each in self._devices(state, preemptor, node):
            if not each.fits(preemptor, 0):
                where, why = self._session.nodes.names[node], each.refusal(preemptor, 0).text
                return f"device {each.name} cannot fit task {preemptor.key} on node {where}: {why}"
        return None


BY_MEMORY: Final = Argument(f"{NAME}.GPUSharingEnable", SWITCH, False, "Whether GPUs are shared by memory.")
BY_NUMBER: Final = Argument(f"{NAME}.GPUNumberEnable", SWITCH, False, "Whether whole GPUs are handed out.")
VIRTUAL: Final = Argument(f"{NAME}.VGPUEnable", SWITCH, False, "Whether virtual GPUs are shared.")
MINDCLUSTER: Final = Argument(
    f"{NAME}.AscendMindClusterVNPUEnable", SWITCH, False, "Whether NPUs are shared as MindCluster shares them."
)
LOCKS: Final = Argument(
    f"{NAME}.NodeLockEnable", SWITCH, False, "Whether a pod that is given devices locks its node until it has them."
)


def _policy(value: object) -> str:
    if value in ("", "binpack", "spread"):
        return str(value)
    raise ValueError(value)


POLICY: Final = Argument(
    f"{NAME}.SchedulePolicy",
    ArgumentKind("binpack or spread", _policy),
    "",
    "Which card of a node goes first: the fullest or the emptiest.",
    "the last one",
)
WEIGHT: Final = Argument(f"{NAME}.ScheduleWeight", INTEGER, 0, "What the scores of nodes count.")


def _rules(value: object) -> Rules:
    for rule in LIST.read(value):
        if not rule or not all(isinstance(each, str) for each in MAPPING.read(rule).values()):
            raise ValueError
    return read_rules(value)


RULES: Final = Argument(
    f"{NAME}.GPUExclusiveRules",
    ArgumentKind("a list of rules, each of labels and their values (texts)", _rules),
    (),
    "Pods that have all labels of a rule never share a card of virtual GPUs.",
    "none",
)


class DeviceShare(KnowsDevices, BuiltInPlugin):
    """Hands out devices of the families that are switched on."""

    name = NAME
    says = "shares cards: GPUs by memory or number, virtual ones, and NPUs"
    listens = ("Predicate", "NodeOrder")
    switches = (BY_MEMORY, BY_NUMBER, VIRTUAL, MINDCLUSTER, HAMI)
    exclusive = (BY_MEMORY.name, BY_NUMBER.name, VIRTUAL.name)
    arguments = (*switches, POLICY, WEIGHT, LOCKS, RULES, CONFIG_MAP, NAMESPACE)
    sections = MappingProxyType({SETTINGS: (BY_CLUSTER, OWN_LIST, PRESET)})

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._switches = Switches(
            gpu_memory=BY_MEMORY.of(arguments),
            gpu_number=BY_NUMBER.of(arguments),
            vgpu=VIRTUAL.of(arguments),
            mindcluster=MINDCLUSTER.of(arguments),
            hami=HAMI.of(arguments),
            policy=POLICY.of(arguments),
            config_map=config_map_of(arguments),
            rules=read_rules(arguments.get(RULES.name)),
        )
        self._lock, self._weight = LOCKS.of(arguments), WEIGHT.of(arguments)
        self._families: Sequence[Family] = ()
        self._assignments: Assignments | None = None

    def find_devices(self, session: Session) -> None:
        """Give the session the devices that there are, with what pods have of them already."""
        families, locks = families_of(session, self._switches), self._locks(session)
        for family in families:
            family.locks = locks
        self._families = families
        others, empty = session.devices, session.empty_devices
        session.devices = [*others, *families]
        session.empty_devices = lambda: [*empty(), *families_of(session, self._switches)]
        self._assignments = Assignments(session, families, locks) if families else None

    def on_session_open(self, session: Session) -> None:
        """Register filter, scorer, event handlers and what binds carry, where there is anything to share."""
        families, assignments = self._families, self._assignments
        if assignments is None:
            return
        trials = DeviceTrials(session, families)
        points = session.points
        points.predicate.add(self.name, [DeviceFilter(families)])
        if self._weight > 0:
            points.node_order.add(self.name, [DeviceScorer(families, self._weight)])
            # MindCluster's NPUs are scored in BatchNodeOrder, all other devices in NodeOrder (deviceshare.go).
            npus = [family for family in families if isinstance(family, MindClusterNpu)]
            points.batch_node_order.add(self.name, [NpuScorer(family, self._weight) for family in npus])
        points.handle(assignments.allocate, assignments.deallocate)
        points.bind_context.add(self.name, assignments.bind_context)
        points.simulate_add_task.add(self.name, trials.add)
        points.simulate_remove_task.add(self.name, trials.remove)
        points.simulate_predicate.add(self.name, trials.predicate)
        points.simulates_nothing.add(self.name, trials.is_quiet)
        session.tellers.owned.append(assignments.owned)
        session.tellers.annotated.append(lambda: assignments.written)

    def _locks(self, session: Session) -> NodeLocks | None:
        """The nodes' own, and those of binds that are on their way."""
        if not self._lock:
            return None
        nodes, coming = session.nodes, dict[str, dict[str, str]]()
        for node, needs in session.snapshot.promised.values():
            coming.setdefault(node, {}).update(needs.locks)

        def locks_of(row: int) -> Mapping[str, str]:
            return {**nodes.specs[row].annotations, **coming.get(nodes.names[row], {})}

        return NodeLocks(nodes.names, locks_of, session.clock.now)
