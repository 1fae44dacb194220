# SPDX-License-Identifier: Apache-2.0
"""A node's chips as MindCluster reports them, with the parts that pods have of them.

Source: Volcano `plugins/deviceshare/devices/ascend/310p/vnpu/init_policy.go`, `third_party/mindcluster/common/k8s`.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from pumice.core.devices.ascend.cuts import ASCEND_310P, CPUS, NOTHING, NULL, OFF, ON, TEMPLATES, Part, VirtualChip
from pumice.core.go_numbers import parse_int
from pumice.core.objects.metadata import Object, is_mapping, section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pumice.core.devices.ascend.reports import Reported
    from pumice.core.objects.node import NodeSpec
    from pumice.core.objects.pod import Task

VENDOR: Final = "huawei.com/"
CORE: Final = "huawei.com/npu-core"
REAL: Final = "huawei.com/AscendReal"
HEALTH: Final = "nodedNodeHealtyStatus"
HEALTHY: Final = "Healthy"
CHIP_TYPE: Final = "node.kubernetes.io/npu.chip.name"
_MOST_LISTED: Final = 100
_KINDS: Final = ("Ascend910", ASCEND_310P, "Ascend310")


class Resident(NamedTuple):
    """A pod on a node: its annotations, and a mark when it is deleted."""

    task: Task
    notes: Mapping[str, str]
    leaves: bool


class NpuFacts(NamedTuple):
    """The facts of a node: its annotations with the reported ones, the time of the report (seconds since the epoch;
    None when the list was computed now), and the number of its super pod.
    """

    spec: NodeSpec
    notes: Mapping[str, str]
    time: int | None
    super_pod: int


@dataclass(slots=True)
class NpuNode:
    """A node with its chips. `status`: as the node's daemon reports it, None for a node that reports nothing;
    `cores_each`: AI cores of a chip by the node's label, 0 for an unreadable one; `total`: AI cores and CPUs of the
    node; `chips` by number; `usable`: whether its chips can be cut; `in_use`: pods by the template of their part (""
    for whole chips); `lowered`: names of pods that get fewer CPUs here than they request; `unhealthy`: numbers of
    chips.
    """

    status: str | None = None
    cores_each: int = 0
    total: Part = NOTHING
    count: int = 0
    usable: bool = False
    chips: dict[int, VirtualChip] = field(default_factory=dict[int, VirtualChip])
    in_use: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    lowered: set[str] = field(default_factory=set[str])
    unhealthy: set[int] = field(default_factory=set[int])
    facts: NpuFacts | None = None

    @property
    def each(self) -> Part:
        """Return what one chip has when it is in use as a whole."""
        return Part(self.cores_each, self.total.cpus // self.count if self.count else 0, NULL)

    def copy(self) -> NpuNode:
        """Return an independent copy."""
        twin = copy(self)
        twin.chips = {number: chip.copy() for number, chip in self.chips.items()}
        twin.in_use = {name: set(uids) for name, uids in self.in_use.items()}
        twin.lowered = set(self.lowered)
        return twin

    def is_whole(self, cores: int) -> bool:
        """Return whether so many cores are whole chips (IsResourceWholeCard)."""
        # 0 cores are whole chips as well (0 % n is 0); assigning them fails with "task require card number 0".
        return bool(self.cores_each) and cores % self.cores_each == 0


def npu_node(spec: NodeSpec, said: Reported, residents: Sequence[Resident], *, own_list: bool) -> NpuNode:
    """Return a node as a session finds it. `own_list`: compute the list of free chips, and ignore the reported one."""
    node = NpuNode()
    if not any(VENDOR in name for name in spec.capacity.scalars or ()):
        return node
    notes, time = _notes(spec, said, [each.task for each in residents] if own_list else None, residents)
    node.status, node.facts = notes[HEALTH], NpuFacts(spec, notes, time, 0 if time == 0 else said.super_pod)
    kind = _kind_and_type(node, spec, notes)
    if kind is not None:
        _fill(node, *kind, notes, residents)
    return node


def _notes(
    spec: NodeSpec, said: Reported, tasks: Sequence[Task] | None, residents: Sequence[Resident]
) -> tuple[dict[str, str], int | None]:
    """Return the node's annotations with the reported ones, and the time of the report."""
    devices = dict(said.devices)
    time: int | None = max(said.time, 0)
    # Volcano asks the map in any order (GetDeviceType), and takes Ascend910 where no name fits.
    own = VENDOR + next((kind for name in devices for kind in _KINDS if kind in name), _KINDS[0])
    if tasks is not None and own in devices:
        listed = _registered(spec.annotations.get("baseDeviceInfos"))
        # Without the node's own list Volcano stops copying the report, in map order. Here only the list is left out.
        if listed is None:
            del devices[own]
        else:
            out = {name for suffix in ("-Unhealthy", "-Recovering") for name in _names(devices.get(own + suffix, ""))}
            taken = {name for each in residents for name in _had(each.notes.get(own, ""))}
            devices[own], time = ",".join(sorted(set(listed) - out - taken)), None
    # A report without a time is never newer than what a new device has, so Volcano does not read it. A node without a
    # state has no faults: NodeD writes none.
    return {**spec.annotations, HEALTH: said.status or HEALTHY, **({} if time == 0 else devices)}, time


def _names(text: str) -> list[str]:
    return text.split(",") if text else []


def _had(text: str) -> list[str]:
    names = _names(text)
    # Volcano ignores a list of more than 100 chips, and with it what the pod uses (GetActivePodUsedDevFromNode).
    return names if len(names) <= _MOST_LISTED else []


def _registered(text: str | None) -> list[str] | None:
    """Return the node's chips, parts left out; None for an unreadable list."""
    try:
        said: Any = msgspec.json.decode(text) if text is not None else None
    except msgspec.DecodeError:
        return None
    return [name for name in said if name.count("-") <= 1] if is_mapping(said) else None


def _kind_and_type(node: NpuNode, spec: NodeSpec, notes: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the kind and the type of the chips; None for a node whose chips cannot be cut."""
    cores = (spec.capacity.scalars or {}).get(CORE, 0.0)
    words = spec.labels.get("accelerator", "").split("-")
    server, chip_type = spec.labels.get("servertype"), spec.labels.get(CHIP_TYPE)
    if cores <= 0 or len(words) < 2 or server is None:
        return None
    parts = server.split("-")
    # A server type is like Ascend310P-10-dual: its second word is the number of AI cores of a chip.
    node.cores_each = (parse_int(parts[1]) or 0) if len(parts) > 1 else 0
    if chip_type is None or VENDOR + words[1] not in notes:
        return None
    node.total = Part(int(cores / 1000))
    if not node.cores_each or node.total.cores % node.cores_each or not node.total.cores // node.cores_each:
        return None
    node.count = node.total.cores // node.cores_each
    # The last match wins, for Volcano's loop has no `break` (getCpuNumPerChip).
    cpus = [cpus for kind, each, cpus in CPUS if kind in (words[1], chip_type) and each == node.cores_each]
    if not cpus:
        return None
    node.total = Part(node.total.cores, cpus[-1] * node.count, OFF)
    return words[1], chip_type


def _fill(node: NpuNode, kind: str, chip_type: str, notes: Mapping[str, str], residents: Sequence[Resident]) -> None:
    node.usable = True
    # TotalRes says that a chip has no image processing, and FreeRes that it is free: NewVChip sets both by hand.
    free = Part(node.total.cores // node.count, node.total.cpus // node.count, ON)
    counting = _Counting(node, kind, free, TEMPLATES.get(kind if kind == ASCEND_310P else chip_type, {}))
    for number in _numbers(notes.get(VENDOR + kind, ""), kind):
        counting.chip(number, fresh=True)
    # Before the pods are counted: what they hold of an unhealthy chip is left out.
    node.unhealthy = set(_numbers(notes.get(f"{VENDOR}{kind}-Unhealthy", ""), kind))
    for each in residents:
        # A chip that a pod holds is not in the list of free chips: it enters the node by the pod's annotation.
        if CORE in each.notes and any(VENDOR in name for name in each.task.template.request.scalars or ()):
            counting.add(each.notes, each.task.uid)


def _numbers(text: str, kind: str) -> Iterable[int]:
    numbers = [parse_int(name.removeprefix(f"{kind}-")) for name in text.split(",")]
    return [number for number in numbers if number is not None]


class _Counting:
    """The pods that a session finds on a node."""

    def __init__(self, node: NpuNode, kind: str, free: Part, templates: Mapping[str, Part]) -> None:
        self._node, self._kind, self._free, self._templates = node, kind, free, templates

    def chip(self, number: int, *, fresh: bool = False) -> VirtualChip:
        """Return the chip of that number, and add it if it is new."""
        chips = self._node.chips
        if fresh or number not in chips:
            chips[number] = VirtualChip(number, self._kind, self._free)
        return chips[number]

    def add(self, notes: Mapping[str, str], uid: str) -> None:
        """Count a pod by its annotations."""
        text = notes[CORE]
        # One number without a template makes the annotation one of whole chips (isPodWholeCardFromAscendCore).
        if any("-" not in name for name in text.split(",")):
            self._add_whole(text, notes, uid)
        elif text.count("-") == 1:
            name, _, template = text.partition("-")
            self._add_part(name, template, notes, uid)

    def _add_whole(self, text: str, notes: Mapping[str, str], uid: str) -> None:
        numbers = [parse_int(each) for each in text.split(",")]
        # One number that cannot be read drops them all: getCardPhysicsIDFromAscendCore returns an error.
        if None in numbers:
            return
        for number in numbers:
            if number is not None and number not in self._node.unhealthy:
                chip = self.chip(number)
                # The device plugin writes the real chips once the container starts; until then nothing else may be cut
                # off here.
                chip.unstable |= not notes.get(REAL)
                chip.parts.append(str(number))
                chip.pods.append(uid)
                # DVPP stays as it is, unlike when a session counts a pod (addNPUResourceWholeCard).
                chip.take(self._free)

    def _add_part(self, name: str, template: str, notes: Mapping[str, str], uid: str) -> None:
        number = parse_int(name)
        if number is None or number in self._node.unhealthy:
            return
        chip = self.chip(number)
        chip.unstable |= not notes.get(REAL)
        chip.parts += [notes[REAL]] if notes.get(REAL) else []
        chip.pods.append(uid)
        chip.cut = True
        part = self._templates.get(template)
        # An unknown template takes nothing, but the chip is cut all the same: Volcano sets SegmentFlag before it looks.
        if part is not None:
            chip.take(part)
            chip.use_dvpp(part.dvpp)


# --- `NPUDevices` as JSON
# Left as empty as a process leaves it that was asked outside of a session: the session's uid, and what its clients
# are.

BASE: Final = "baseDeviceInfos"
_CLIENT: Final = {"LegacyPrefix": "/api", "UseLegacyDiscovery": False, "NoPeerDiscovery": False}


class NpuFrame(NamedTuple):
    """Settings: whose reports count, who lists the free chips, and whether parts are cut beforehand; `now`: when the
    session opened, in seconds since the epoch.
    """

    by_cluster: bool = True
    own_list: bool = True
    preset: bool = False
    now: int = 0


DEFAULT: Final = NpuFrame()


def npu_body(
    name: str, node: NpuNode, whole: Callable[[str], Any], idle: Mapping[str, float], frame: NpuFrame
) -> Object:
    """Return the JSON of `NPUDevices`. `whole`: all that the api has of a pod, by its uid; `idle`: the node's scalars
    in milli-units.
    """
    return {
        "Name": name,
        **_node(node.facts, idle, frame.now),
        **_kind(node),
        "VT": {"Data": _templates(TEMPLATES[ASCEND_310P]), "Temp": ASCEND_310P},
        "Chips": {str(number): _chip(node, chip, whole) for number, chip in sorted(node.chips.items())},
        "UnhealthyChipIds": {str(number): {} for number in sorted(node.unhealthy)},
        "ValidVNode": node.usable,
        "DowngradeCache": {pod: {} for pod in sorted(node.lowered)},
        "ConCache": {template: {uid: {} for uid in sorted(uids)} for template, uids in sorted(node.in_use.items())},
        "FrameAttr": _frame(frame),
    }


def _node(facts: NpuFacts | None, idle: Mapping[str, float], now: int) -> Object:
    """Return the JSON of `NodeInf`; empty for a node that reports nothing."""
    if facts is None:
        empty: Object = {name: {} for name in ("Capability", "Allocate", "Idle", "Annotation", "Label")}
        return {**empty, "BaseDeviceInfo": "", "Address": "", "SuperPodID": 0, "DevInfoUpdateTime": 0}
    spec = facts.spec
    addresses = section(spec.node, "status").get("addresses") or ()
    return {
        "Capability": spec.capacity.scalars,
        "Allocate": spec.allocatable.scalars,
        "Idle": dict(idle),
        "BaseDeviceInfo": spec.annotations.get(BASE, ""),
        "Annotation": dict(facts.notes),
        "Label": spec.labels or None,
        "Address": next((each["address"] for each in addresses if each.get("type") == "InternalIP"), ""),
        "SuperPodID": facts.super_pod,
        "DevInfoUpdateTime": now if facts.time is None else facts.time,
    }


def _kind(node: NpuNode) -> Object:
    """Return the chips' labels and capacity, as far as Volcano reads before something is missing."""
    said: Object = {"ChipKind": "", "ServerType": "", "ChipType": "", "FreeChipNum": 0}
    known = _read(node.facts, said)
    each, total = node.cores_each if known else 0, node.total if known else Part()
    return {**said, "TotalChipNum": node.count, "AiCorePerChip": each, "TotalRes": _resource(total)}


def _read(facts: NpuFacts | None, said: Object) -> bool:
    """Fill `said` from labels and capacity; return whether nothing was missing."""
    if facts is None or (facts.spec.capacity.scalars or {}).get(CORE, 0.0) <= 0:
        return False
    labels = facts.spec.labels
    words = labels.get("accelerator", "").split("-")
    if len(words) < 2:
        return False
    said["ChipKind"] = words[1]
    for key, label in (("ServerType", "servertype"), ("ChipType", CHIP_TYPE)):
        if label not in labels:
            return False
        said[key] = labels[label]
    free = facts.notes.get(VENDOR + words[1])
    if free is None:
        return False
    said["FreeChipNum"] = len(free.split(","))
    return True


def _chip(node: NpuNode, chip: VirtualChip, whole: Callable[[str], Any]) -> Object:
    """Return the JSON of `VChip`."""
    server = "" if node.facts is None else node.facts.spec.labels.get("servertype", "")
    return {
        "PodMap": {uid: whole(uid) for uid in sorted(set(chip.pods))},
        "ID": chip.parts or None,
        "Name": f"{chip.kind}-{chip.number}",
        "Kind": chip.kind,
        "IsDual": server.startswith("dual"),
        "Unstable": chip.unstable,
        "CoreNum": node.cores_each,
        "SegmentFlag": chip.cut,
        "TotalRes": _resource(Part(node.total.cores // node.count, node.total.cpus // node.count, OFF)),
        "UsedRes": _resource(chip.used),
        "FreeRes": _resource(chip.free),
    }


def _resource(part: Part) -> Object:
    """Return the JSON of `VResource`."""
    return {"Aicore": part.cores, "Aicpu": part.cpus, "DVPP": part.dvpp}


def _templates(templates: Mapping[str, Part]) -> Object:
    return {name: _resource(part) for name, part in templates.items()}


def _frame(frame: NpuFrame) -> Object:
    """Return the JSON of `VolcanoFrame`."""
    return {
        "UID": "",
        "KubeClient": _CLIENT,
        "InformerFactory": {},
        "VJobTemplate": {kind: _templates(each) for kind, each in TEMPLATES.items()},
        "OnceInit": {},
        "UseClusterD": frame.by_cluster,
        "SelfMaintainAvailCard": frame.own_list,
        "NslbVersion": "",
        "SharedTorNum": 0,
        "IsFirstSession": True,
        "PresetVirtualDevice": frame.preset,
        "GraceDeleteTime": 0,
        "SuperPodSize": 0,
        "ReservePodSize": 0,
    }
