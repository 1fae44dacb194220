"""Nodes with cards and pods that ask for them, and the families over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.core.devices import gpushare, vgpu
from pumice.core.devices.ascend import CORE
from pumice.core.objects.metadata import Object
from pumice.core.objects.node import read_node
from pumice.core.objects.pod import TemplateTable, read_task
from pumice.core.state.dimensions import Dimensions
from tests.kit import node, pod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task

TEMPLATES = TemplateTable(Dimensions())


def asking(
    name: str, *each: dict[str, int], notes: dict[str, str] | None = None, labels: dict[str, str] | None = None
) -> Task:
    """A pod whose containers have these limits, `vgpu_number` for volcano.sh/vgpu-number."""
    named = [{f"volcano.sh/{key.replace('_', '-')}": str(value) for key, value in one.items()} for one in each]
    return limited(name, *named, notes=notes, labels=labels)


def limited(
    name: str, *each: dict[str, str], notes: dict[str, str] | None = None, labels: dict[str, str] | None = None
) -> Task:
    """A pod whose containers have these limits."""
    made = pod(name, annotations=notes or {}, labels=labels or {})
    made["spec"]["containers"] = [{"name": "c", "resources": {"limits": one, "requests": one}} for one in each]
    return read_task(made, 0, TEMPLATES)


def gpu_node(name: str, cards: int, memory: int, unhealthy: str = "") -> Object:
    """A node whose cards have so many MiB together."""
    made = node(name, annotations={"volcano.sh/gpu-unhealthy-ids": unhealthy} if unhealthy else {})
    amounts = {"volcano.sh/gpu-memory": str(memory), "volcano.sh/gpu-number": str(cards)}
    for part in ("allocatable", "capacity"):
        made["status"].setdefault(part, {}).update(amounts)
    return made


def vgpu_node(name: str, cards: Sequence[tuple[int, int, str]], mode: str = "hami-core") -> Object:
    """A node that registered these cards: sharers, MiB and type of each."""
    said = "".join(f"{name}-{i},{split},{mib},{kind},true,{mode}:" for i, (split, mib, kind) in enumerate(cards))
    made = node(name, annotations={"volcano.sh/node-vgpu-register": said})
    made["status"]["allocatable"] |= {f"volcano.sh/vgpu-{each}": "999999" for each in ("number", "memory", "cores")}
    return made


def chip_node(name: str, chips: int = 2) -> Object:
    """A node with chips that MindCluster can cut, of eight AI cores each."""
    labels = {"accelerator": "huawei-Ascend310P", "servertype": "Ascend310P-8", "node.kubernetes.io/npu.chip.name": "x"}
    made = node(name, labels=labels)
    said: Object = {f"Ascend310P-{number}": {} for number in range(chips)}
    made["metadata"].setdefault("annotations", {})["baseDeviceInfos"] = msgspec.json.encode(said).decode()
    for part in ("allocatable", "capacity"):
        made["status"].setdefault(part, {})[CORE] = str(8 * chips)
    return made


def shared(*nodes: Object, by_memory: bool = True, overfull_is_full: bool = False) -> gpushare.GpuShare:
    """Cards shared by memory, or had whole by number."""
    specs = [read_node(each) for each in nodes]
    cards = gpushare.cards_of(specs)
    return gpushare.GpuShare(
        [spec.name for spec in specs],
        cards,
        by_memory=by_memory,
        by_number=not by_memory,
        overfull_is_full=overfull_is_full,
    )


def virtual(*nodes: Object, policy: str = "", nvidia: Object | None = None, once: bool = False) -> vgpu.Vgpu:
    """Virtual GPUs; `nvidia`: what the ConfigMap says."""
    specs, settings = [read_node(each) for each in nodes], vgpu.settings_of(nvidia)
    return vgpu.Vgpu([spec.name for spec in specs], vgpu.cards_of(specs, settings), settings, policy, once=once)
