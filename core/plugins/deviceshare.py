# SPDX-License-Identifier: Apache-2.0
"""deviceshare: share cards between pods, by the kinds that are switched on. Source: Volcano `plugins/deviceshare`."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pumice.config.arguments import INTEGER, LIST, MAPPING, SWITCH, Argument, ArgumentKind, PluginArguments
from pumice.core.devices import ascend, gpushare, vgpu
from pumice.core.devices.ascend import CORE, MindClusterNpu, NpuFrame, Reports, Resident, npu_node, shares
from pumice.core.devices.settings import CONFIG_MAP, HAMI, NAMESPACE, config_map_of, device_config
from pumice.core.devices.vgpu import read_rules
from pumice.core.life.task import TaskStatus
from pumice.core.plugins.device_plugin import DevicePlugin
from pumice.core.session.points.nodes import Reads
from pumice.core.session.points.rules import ColumnRule
from pumice.core.state.derived import derived
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.devices.ascend import ChipModel, Chips
    from pumice.core.devices.family import Family
    from pumice.core.devices.gpushare import Cards
    from pumice.core.devices.vgpu import Rules, VgpuCards, VgpuSettings
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import FloatArray, NodeScorer
    from pumice.core.session.points.rules import Score
    from pumice.core.session.session import Session
    from pumice.core.state.sources import NodeSpecs

# --- MindCluster's NPUs
# Source: Volcano `plugins/deviceshare/devices/ascend/310p/vnpu`.

SETTINGS: Final = "init-params"
_ON: Final = ArgumentKind("true or false", lambda said: said in (None, True, "true"))
_OFF: Final = ArgumentKind("true or false", lambda said: said in (True, "true"))
BY_CLUSTER: Final = Argument("useClusterInfoManager", _ON, True, "Whether the reports that ClusterD gathers count.")
OWN_LIST: Final = Argument("self-maintain-available-card", _ON, True, "Whether free chips are counted from its pods.")
PRESET: Final = Argument("presetVirtualDevice", _OFF, False, "Whether parts of chips are cut beforehand.")
CHIPS_ONCE: Final = "npu-chips-once"
HIGH: Final = 8.0
LEAVING: Final = (TaskStatus.RELEASING, TaskStatus.PIPELINED)


def mindcluster(session: Session) -> MindClusterNpu:
    """Return the NPUs of a session's nodes, with the parts that pods hold."""
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


class NpuScorer:
    """Scores nodes by MindCluster's NPUs. Every pod is scored, also one that requests no NPUs."""

    name = "deviceshare"

    def __init__(self, family: MindClusterNpu, weight: int) -> None:
        self._family, self._weight = family, weight
        self.reads = Reads(kind=family.kind)

    def prepare(self, session: Session, task: Task) -> Score:
        """Return ranks as raw scores: the score of a node depends on its rivals."""
        return ColumnRule(partial(self._family.rank, task), finish=lambda raw: shares(raw, HIGH) * self._weight)


# --- Arguments

NAME: Final = "deviceshare"
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
    """Return the cards that pods share by memory or number."""
    return gpushare.cards_of(nodes.specs)


@derived(NODES)
def virtual_cards(nodes: NodeSpecs, settings: VgpuSettings) -> VgpuCards:
    """Return the cards of virtual GPUs."""
    return vgpu.cards_of(nodes.specs, settings)


@derived(NODES)
def chips(nodes: NodeSpecs, model: ChipModel) -> Chips:
    """Return the chips of a model of NPUs."""
    return ascend.chips_of(nodes.specs, model)


def switched_on(session: Session, switches: Switches) -> list[Family]:
    """Return the families that are switched on, in the order in which Volcano registers them."""
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


class DeviceShare(DevicePlugin):
    """Hands out devices of the families that are switched on."""

    name = NAME
    says = "shares cards: GPUs by memory or number, virtual ones, and NPUs"
    families = (gpushare.GpuShare, vgpu.Vgpu, ascend.HamiNpu, MindClusterNpu)
    switches = (BY_MEMORY, BY_NUMBER, VIRTUAL, MINDCLUSTER, HAMI)
    exclusive = (BY_MEMORY.name, BY_NUMBER.name, VIRTUAL.name)
    arguments = (*switches, POLICY, WEIGHT, LOCKS, RULES, CONFIG_MAP, NAMESPACE)
    sections = MappingProxyType({SETTINGS: (BY_CLUSTER, OWN_LIST, PRESET)})

    def __init__(self, arguments: PluginArguments) -> None:
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
        self.locks, self.weight = LOCKS.of(arguments), WEIGHT.of(arguments)

    def families_of(self, session: Session) -> list[Family]:
        """Return the families that are switched on, in the order in which Volcano registers them."""
        return switched_on(session, self._switches)

    def can_go_on(self, session: Session) -> bool:
        """Return whether no NPUs of MindCluster count: their scorer reads one family, while all other rules read the
        list of families, which are found again.
        """
        return not self._switches.mindcluster

    def batch_scorers(self, families: Sequence[Family]) -> list[NodeScorer]:
        """Return the scorers of MindCluster's NPUs: these are scored in BatchNodeOrder, all other devices in NodeOrder
        (deviceshare.go).
        """
        return [NpuScorer(family, self.weight) for family in families if isinstance(family, MindClusterNpu)]
