"""Shares of cards and NUMA cells of a storm: what nodes have, and what pods ask for of it."""

from __future__ import annotations

import json
from typing import Any, Final

from core.devices.vgpu.settings import CORES, MEMORY, NUMBER
from core.objects.node_devices import ANNOTATION

Object = dict[str, Any]

CARD: Final = {"memory": 16384, "split": 3}
"""Every card: MiB, and how many pods may share it."""
SHARES: Final = ((4096, 25), (8000, 50), (12000, 30), (16384, 100), (2048, 60))
"""MiB and per cent of a card that the pods of a job ask for."""
POLICY: Final = "volcano.sh/numa-topology-policy"
RESTRICTED: Final = "single-numa-node"


def reported(details: Object) -> dict[str, str]:
    """Annotations of a node: the node agents report its `cards` (how many), and `cells` of its CPUs."""
    devices: Object = {}
    if details.get("cards"):
        devices["vgpu"] = {"cards": int(details["cards"]), **CARD}
    if details.get("cells"):
        cells = {"cells": int(details["cells"]), "cpus": int(details["cpu"]), "policy": RESTRICTED}
        devices["numa"] = cells
    return {ANNOTATION: json.dumps(devices)} if devices else {}


def limits(details: Object) -> dict[str, str]:
    """What a container asks for: a `share` of a card in MiB and its `cores` in per cent."""
    if not details.get("share"):
        return {}
    return {NUMBER: "1", MEMORY: str(details["share"]), CORES: str(details.get("cores", 0))}


def policy(details: Object) -> dict[str, str]:
    """Annotations of a pod that is to have its whole `cpu` in one cell."""
    return {POLICY: RESTRICTED} if details.get("whole") else {}
