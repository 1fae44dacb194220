# SPDX-License-Identifier: Apache-2.0
"""Shares of cards and NUMA cells of a storm: the offers of nodes, and the requests of pods."""

from __future__ import annotations

import json
from typing import Final

from pumice.core.devices import gpushare as shared
from pumice.core.devices.ascend import CORE
from pumice.core.devices.settings import FILE
from pumice.core.devices.vgpu.settings import CORES, MEMORY, NUMBER
from pumice.core.objects.metadata import Object
from pumice.core.objects.node_devices import ANNOTATION

CARD: Final = {"memory": 16384, "split": 3}
"""Every card: MiB, and how many pods may share it."""
SLICED: Final = {**CARD, "type": "NVIDIA-A100", "mode": "mig"}
SHARED_MIB: Final = 16384
POLICY: Final = "volcano.sh/numa-topology-policy"
RESTRICTED: Final = "single-numa-node"
NPU: Final = "huawei.com/Ascend310P"
NPU_MEMORY: Final = f"{NPU}-memory"
NPU_REGISTER: Final = "hami.io/node-register-Ascend310P"
NPU_MIB: Final = 21527
CHIP_CORES: Final = 8
_SLICES: Final = (
    ("group1", (("1g.4gb", 4096, 4),)),
    ("group2", (("2g.8gb", 8192, 1), ("1g.4gb", 4096, 2))),
    ("group3", (("4g.16gb", 16384, 1),)),
)
"""Cuts of a card: (group, (name, MiB, how many) of each kind of slice)."""


def notes(node: str, details: Object) -> dict[str, str]:
    """Return annotations of a node: the node agents report its `cards` (how many; `mig`: cut into slices), its
    `gpus-shared` and the `cells` of its CPUs; `npus` and `chips` are reported already, the one to HAMi, the other to
    MindCluster.
    """
    devices: Object = {}
    if details.get("cards"):
        devices["vgpu"] = {"cards": int(details["cards"]), **(SLICED if details.get("mig") else CARD)}
    if details.get("gpus-shared"):
        devices["gpu"] = {"cards": int(details["gpus-shared"]), "memory": SHARED_MIB}
    if details.get("cells"):
        cells = {"cells": int(details["cells"]), "cpus": int(details["cpu"]), "policy": RESTRICTED}
        devices["numa"] = cells
    found = {ANNOTATION: json.dumps(devices)} if devices else {}
    if details.get("npus"):
        chip = {"count": CARD["split"], "devmem": NPU_MIB, "devcore": CHIP_CORES, "type": "Ascend310P", "health": True}
        names = [f"NPU-{node}-{number}" for number in range(int(details["npus"]))]
        found[NPU_REGISTER] = json.dumps([{"id": name, **chip} for name in names])
    if details.get("chips"):
        found["baseDeviceInfos"] = json.dumps({name: {} for name in _chips(details)})
    return found


def quantities(details: Object) -> dict[str, str]:
    """Return the NPU resources that the kubelet of a node counts."""
    npus, chips = int(details.get("npus", 0)), int(details.get("chips", 0))
    counted = {NPU: npus * CARD["split"], NPU_MEMORY: npus * NPU_MIB, CORE: chips * CHIP_CORES}
    return {name: str(amount) for name, amount in counted.items() if amount}


def labels(details: Object) -> dict[str, str]:
    """Return the labels of a node with chips that MindCluster shares."""
    if not details.get("chips"):
        return {}
    kind = {"accelerator": "huawei-Ascend310P", "servertype": f"Ascend310P-{CHIP_CORES}"}
    return {**kind, "node.kubernetes.io/npu.chip.name": "310P3"}


def reports(node: str, details: Object) -> list[Object]:
    """Return the report of MindCluster's device plugin about a node's chips."""
    if not details.get("chips"):
        return []
    said = {"DeviceInfo": {"DeviceList": {NPU: ",".join(_chips(details))}, "UpdateTime": 1}}
    named = {"name": f"mindx-dl-deviceinfo-{node}", "labels": {"mx-consumer-cim": "true"}}
    return [_config_map(named, "DeviceInfoCfg", json.dumps(said))]


def _chips(details: Object) -> list[str]:
    return [f"Ascend310P-{number}" for number in range(int(details["chips"]))]


def geometries() -> Object:
    """Return the ConfigMap that says how cards can be cut."""
    ways = [
        {"group": group, "geometries": [{"name": name, "memory": mib, "count": most} for name, mib, most in kinds]}
        for group, kinds in _SLICES
    ]
    named = {"resourceCountName": NUMBER, "resourceMemoryName": MEMORY, "resourceCoreName": CORES}
    known = [{"models": ["A100"], "allowedGeometries": ways}]
    said = {"nvidia": {**named, "knownMigGeometries": known}}
    return _config_map({"name": "volcano-vgpu-device-config"}, FILE, json.dumps(said))


def _config_map(named: Object, key: str, text: str) -> Object:
    metadata = {"namespace": "kube-system", **named}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: text}}


def limits(details: Object) -> dict[str, str]:
    """Return the limits of a container: a `share` of a card in MiB and its `cores` in per cent, `gpu-memory` in MiB or
    `gpu-number` of shared ones, `npu` in MiB of an NPU, `npu-cores` of it.
    """
    found: dict[str, str] = {}
    if details.get("share"):
        found |= {NUMBER: "1", MEMORY: str(details["share"]), CORES: str(details.get("cores", 0))}
    if details.get("npu"):
        found |= {NPU: "1", NPU_MEMORY: str(details["npu"])}
    plain = {"gpu-memory": shared.MEMORY, "gpu-number": shared.NUMBER, "npu-cores": CORE}
    return found | {name: str(details[key]) for key, name in plain.items() if details.get(key)}


def asking(details: Object) -> dict[str, str]:
    """Return labels of a pod that requests cores of MindCluster."""
    return {"ring-controller.atlas": "ascend-310P", "vnpu-level": "low"} if details.get("npu-cores") else {}


def policy(details: Object) -> dict[str, str]:
    """Return annotations of a pod that must have its whole `cpu` in one cell."""
    return {POLICY: RESTRICTED} if details.get("whole") else {}
