# SPDX-License-Identifier: Apache-2.0
"""Device plugins of virtual and of shared GPUs on every node, as one pure machine.

They report the node's cards (capacity, registration, and that they are alive), and when a pod with assigned cards comes
to the node, they hand these out and say so: the bind phase goes from `allocating` to `success`, or to `failed` when the
node has no such cards. Source: Project-HAMi/volcano-vgpu-device-plugin (`WatchAndRegister`, `Allocate`), and
volcano-sh/devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pumice.cluster.kube.statuses import timestamp
from pumice.cluster.kubelets.statuses import refused_status
from pumice.cluster.machine import Machine
from pumice.cluster.timers import Timers
from pumice.core.devices import gpushare as shared
from pumice.core.devices.vgpu import Vgpu
from pumice.core.devices.vgpu import codec as vgpu
from pumice.core.devices.vgpu.settings import CORES, MEMORY, NUMBER
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.commands import ApiRequest, Patch, UpdateStatus
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.objects.node_devices import NONE, NodeDevices, VirtualGpus, devices_of
from pumice.core.objects.parts import POD_PLACED
from pumice.storage.codec import pack

PodKey = tuple[str, str]

USER: Final = "device-plugin"
ALIVE_S: Final = 30.0
"""Seconds between two reports."""
LOCKS: Final = ("volcano.sh/mutex.lock", shared.LOCK, Vgpu.name)
"""HAMi's own, and those that Volcano sets."""
ASSIGNED: Final = "volcano.sh/gpu-assigned"
NEVER: Final = str(2**64 - 1)
"""A pod that has its cards comes after all that wait for theirs."""
ALLOCATING, SUCCESS, FAILED = "allocating", "success", "failed"
WHOLE: Final = 100
"""A card's cores, in per cent."""


class DevicePluginMachine(Machine):
    """Reports nodes' cards, and assigns them. Nodes without devices are left alone."""

    kinds = ("Node", POD_PLACED)

    def __init__(self) -> None:
        self._nodes: dict[str, NodeDevices] = {}
        self._stated: dict[str, bool] = {}  # by node: True if it has devices to report
        self._locked: dict[str, tuple[str, ...]] = {}  # by node: by what a scheduler waits for a pod to have its cards
        self._alive: Timers[str] = Timers()
        self._fresh: dict[str, None] = {}
        self._pods: dict[PodKey, Object] = {}

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        if kind == "Node":
            self._node(obj, deleted=deleted)
        elif not deleted and _waits_for_cards(obj):
            self._pods[obj["metadata"]["namespace"], obj["metadata"]["name"]] = obj
        else:
            self._pods.pop((obj["metadata"]["namespace"], obj["metadata"]["name"]), None)

    def _node(self, node: Object, *, deleted: bool) -> None:
        name, wanted = node["metadata"]["name"], NONE if deleted else devices_of(node)
        if wanted.vgpu is None and wanted.gpu is None:
            self._nodes.pop(name, None)
            self._fresh.pop(name, None)
            self._locked.pop(name, None)
            self._alive.cancel(name)
            return
        annotations = text_map(node["metadata"].get("annotations"))
        self._locked[name] = tuple(lock for lock in LOCKS if lock in annotations)
        self._stated[name] = _has(node, _amounts(wanted))
        if self._nodes.get(name) != wanted or not self._stated[name]:
            self._nodes[name] = wanted
            self._fresh[name] = None

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        due = dict.fromkeys([*self._fresh, *self._alive.take_due(now)])
        self._fresh = {}
        requests = [request for name in due for request in self._report(name, now)]
        for pod in [pod for pod in self._pods.values() if pod["spec"]["nodeName"] in self._nodes]:
            del self._pods[pod["metadata"]["namespace"], pod["metadata"]["name"]]
            requests += self._hand_out(pod)
        return requests

    def _report(self, name: str, now: float) -> list[ApiRequest]:
        wanted = self._nodes[name]
        requests: list[ApiRequest] = []
        if not self._stated.get(name):
            amounts = _amounts(wanted)
            requests.append(
                UpdateStatus("Node", "", name, pack({"capacity": amounts, "allocatable": amounts}), user=USER)
            )
            # before the watch tells: the next look must not write the same again
            self._stated[name] = True
        if wanted.vgpu is not None:
            said = {vgpu.REGISTER: registration(name, wanted.vgpu), vgpu.HANDSHAKE: f"Reported {timestamp(now)}"}
            requests.append(_annotate("Node", "", name, said))
            self._alive.set(name, now + ALIVE_S)
        return requests

    def _unlock(self, node: str) -> list[ApiRequest]:
        locks = self._locked.pop(node, ())
        return [_annotate("Node", "", node, dict.fromkeys(locks))] if locks else []

    def _hand_out(self, pod: Object) -> list[ApiRequest]:
        meta, wanted = pod["metadata"], self._nodes[pod["spec"]["nodeName"]]
        annotations = text_map(meta.get("annotations"))
        if annotations.get(vgpu.BIND_PHASE) != ALLOCATING:
            handed = _annotate("Pod", meta["namespace"], meta["name"], {ASSIGNED: "true"})
            return [handed, *self._unlock(pod["spec"]["nodeName"])]
        given = vgpu.assigned(annotations.get(vgpu.TO_ALLOCATE, ""))
        there = {card.uuid for card in _cards(pod["spec"]["nodeName"], wanted.vgpu)}
        fits = all(card.uuid.partition("[")[0] in there for devices in given for card in devices)
        phase = SUCCESS if given and fits else FAILED
        said = {vgpu.BIND_PHASE: phase, vgpu.TIME: NEVER}
        if phase == SUCCESS:
            said[vgpu.TO_ALLOCATE] = ";" * (len(given) - 1)
        requests: list[ApiRequest] = [_annotate("Pod", meta["namespace"], meta["name"], said)]
        requests += self._unlock(pod["spec"]["nodeName"])
        if phase == FAILED:
            status = pack(refused_status("Allocate failed: the node has no such cards"))
            requests.append(UpdateStatus("Pod", meta["namespace"], meta["name"], status, user=USER))
        return requests

    def next_due(self) -> float | None:
        """Return the time when `step` has work without any change; None for never."""
        return self._alive.next_due()


def registration(node: str, wanted: VirtualGpus) -> str:
    """Return the cards as the annotation of the node has them."""
    return "".join(
        f"{card.uuid},{card.split},{card.memory},{card.type},true,{card.mode}:" for card in _cards(node, wanted)
    )


def _cards(node: str, wanted: VirtualGpus | None) -> list[vgpu.Registered]:
    if wanted is None:
        return []
    numbers = range(wanted.cards)
    return [
        vgpu.Registered(
            f"GPU-{node}-{number}", wanted.split, wanted.memory, wanted.type, healthy=True, mode=wanted.mode
        )
        for number in numbers
    ]


def _amounts(wanted: NodeDevices) -> dict[str, str]:
    """Return the amounts of the devices, as the kubelet counts them."""
    amounts: dict[str, int] = {}
    if wanted.vgpu is not None:
        cards = wanted.vgpu.cards
        amounts |= {NUMBER: cards * wanted.vgpu.split, MEMORY: cards * wanted.vgpu.memory, CORES: cards * WHOLE}
    if wanted.gpu is not None:
        amounts |= {shared.NUMBER: wanted.gpu.cards, shared.MEMORY: wanted.gpu.cards * wanted.gpu.memory}
    return {name: str(amount) for name, amount in amounts.items()}


def _has(node: Object, amounts: dict[str, str]) -> bool:
    capacity = section(section(node, "status"), "capacity")
    return all(str(capacity.get(name)) == amount for name, amount in amounts.items())


def _waits_for_cards(pod: Object) -> bool:
    annotations = text_map(pod["metadata"].get("annotations"))
    unassigned = shared.INDEX in annotations and ASSIGNED not in annotations
    if not unassigned and annotations.get(vgpu.BIND_PHASE) != ALLOCATING:
        return False
    return section(pod, "status").get("phase") not in ENDED_PHASES and bool(section(pod, "spec").get("nodeName"))


def _annotate(kind: str, namespace: str, name: str, said: Mapping[str, str | None]) -> Patch:
    return Patch(kind, namespace, name, pack({"metadata": {"annotations": said}}), user=USER)
