"""A node's NPUs as Volcano's struct (`NPUDevices`) encodes to JSON.

Left as empty as a process leaves it that was asked outside of a session: the session's uid, and what its clients are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pumice.core.devices.ascend.cuts import ASCEND_310P, OFF, TEMPLATES, Part
from pumice.core.devices.ascend.npu_node import CHIP_TYPE, CORE, VENDOR
from pumice.core.objects.metadata import section

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.core.devices.ascend.npu_node import NpuFacts, NpuNode
    from pumice.core.devices.ascend.virtual_chip import VirtualChip

Body = dict[str, Any]
BASE: Final = "baseDeviceInfos"
_CLIENT: Final = {"LegacyPrefix": "/api", "UseLegacyDiscovery": False, "NoPeerDiscovery": False}


class NpuFrame(NamedTuple):
    """Settings: whose reports count, who says which chips are free, and whether parts are cut beforehand; `now`: when
    the session opened, in seconds since the epoch.
    """

    by_cluster: bool = True
    own_list: bool = True
    preset: bool = False
    now: int = 0


DEFAULT: Final = NpuFrame()


def npu_body(name: str, node: NpuNode, whole: Callable[[str], Any], idle: Mapping[str, float], frame: NpuFrame) -> Body:
    """`NPUDevices`. `whole`: of a pod by its uid, all that the api has; `idle`: the node's scalars in milli-units."""
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


def _node(facts: NpuFacts | None, idle: Mapping[str, float], now: int) -> Body:
    """`NodeInf`: nothing for a node that reports nothing."""
    if facts is None:
        empty: Body = {name: {} for name in ("Capability", "Allocate", "Idle", "Annotation", "Label")}
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


def _kind(node: NpuNode) -> Body:
    """What labels and capacity say of the chips, as far as Volcano came before something was missing."""
    said: Body = {"ChipKind": "", "ServerType": "", "ChipType": "", "FreeChipNum": 0}
    known = _read(node.facts, said)
    each, total = node.cores_each if known else 0, node.total if known else Part()
    return {**said, "TotalChipNum": node.count, "AiCorePerChip": each, "TotalRes": _resource(total)}


def _read(facts: NpuFacts | None, said: Body) -> bool:
    """Whether nothing was missing."""
    if facts is None or (facts.spec.capacity.scalars or {}).get(CORE, 0.0) <= 0:
        return False
    labels = facts.spec.labels
    words = labels.get("accelerator", "").split("-")
    if len(words) < 2:
        return False
    said["ChipKind"] = words[1]
    for field, label in (("ServerType", "servertype"), ("ChipType", CHIP_TYPE)):
        if label not in labels:
            return False
        said[field] = labels[label]
    free = facts.notes.get(VENDOR + words[1])
    if free is None:
        return False
    said["FreeChipNum"] = len(free.split(","))
    return True


def _chip(node: NpuNode, chip: VirtualChip, whole: Callable[[str], Any]) -> Body:
    """`VChip`."""
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


def _resource(part: Part) -> Body:
    """`VResource`."""
    return {"Aicore": part.cores, "Aicpu": part.cpus, "DVPP": part.dvpp}


def _templates(templates: Mapping[str, Part]) -> Body:
    return {name: _resource(part) for name, part in templates.items()}


def _frame(frame: NpuFrame) -> Body:
    """`VolcanoFrame`."""
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
