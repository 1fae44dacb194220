# SPDX-License-Identifier: Apache-2.0
"""The openb trace on deviceshare's cards: nodes that registered virtual GPUs, and pods that request shares of them.

A card has 1,000 MiB, so that a MiB is a thousandth of a card (`gpu_milli`) and nothing is rounded; any number of pods
may share it. A pod's `gpu_spec` ("A|B") becomes the annotation with the types of cards that it may use. What "Beware of
Fragmentation" leaves out is left out here: nodes take any number of pods. Equal scores go to the lowest name, so that
the names given here decide them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.core.devices.milli import FULL, CardClass
from pumice.core.devices.vgpu.asking import NVIDIA, USE
from pumice.core.devices.vgpu.codec import HAMI, REGISTER
from pumice.core.devices.vgpu.settings import CORES, MEMORY, NUMBER
from pumice.core.objects.metadata import Object
from pumice.load.openb import pod_of_trace, ready_with

if TYPE_CHECKING:
    from pumice.load.openb import OpenbRow

PLENTY: Final = "10000"
"""Pods on a node."""
SHARERS: Final = 1000


def card_node(row: OpenbRow, name: str) -> Object:
    """Return a node of the trace under that name."""
    cards, model = row.number("gpu"), row.text("model")
    registered = "".join(f"{name}-{card},{SHARERS},{FULL},{NVIDIA}-{model},true,{HAMI}:" for card in range(cards))
    amounts = {
        "cpu": f"{row.number('cpu_milli')}m",
        "memory": f"{row.number('memory_mib')}Mi",
        "pods": PLENTY,
        NUMBER: str(SHARERS * cards),
        MEMORY: str(FULL * cards),
        CORES: str(100 * cards),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name},
            "annotations": {REGISTER: registered} if cards else {},
        },
        "spec": {},
        "status": ready_with(amounts),
    }


def card_pod(row: OpenbRow, name: str, arrival: int) -> Object:
    """Return a pod of the trace under that name; `arrival`: seconds since the start of the trace."""
    asked = class_of(row)
    shares = {NUMBER: str(asked.cards), MEMORY: str(asked.milli)} if asked.cards else {}
    requests = {"cpu": f"{asked.cpu}m", "memory": f"{row.number('memory_mib')}Mi", **shares}
    container: Object = {"name": "main", "image": "openb", "resources": {"requests": requests, "limits": shares}}
    pod = pod_of_trace(name, arrival, container, {USE: asked.models.replace("|", ",")} if asked.models else {})
    pod["metadata"]["uid"] = f"openb-{name}"
    return pod


def class_of(row: OpenbRow) -> CardClass:
    """Return the CPU and cards that a pod of the trace asks for. The plugin fgd finds the typical ones among these
    classes."""
    cards = row.number("num_gpu")
    milli = min(row.number("gpu_milli"), FULL) if cards else 0
    return CardClass(row.number("cpu_milli"), milli, cards, row.text("gpu_spec"))


def typical_pods(classes: dict[CardClass, int]) -> list[Object]:
    """Return classes of pods, with their numbers, as the argument `fgd.typicalPods`."""
    return [{**pod._asdict(), "pods": count} for pod, count in classes.items()]
