"""Nodes that ask for devices have device plugins and a resource exporter."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pumice.cluster.kubelets.cell_reports import CellReportsMachine, topology_of
from pumice.cluster.kubelets.device_plugin import ALIVE_S, ASSIGNED, LOCKS, NEVER, DevicePluginMachine
from pumice.core.devices.vgpu import codec as vgpu
from pumice.core.devices.vgpu.codec import HANDSHAKE
from pumice.core.messages.commands import Create, Delete, Patch, UpdateStatus
from pumice.core.messages.replies import Refused
from pumice.core.objects.node_devices import ANNOTATION, NumaCells, read_devices
from pumice.storage.codec import unpack
from tests.actors.rig import QUICK, idle, placed, started, stored
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod

CARDS = {"vgpu": {"cards": 2, "memory": 16384, "split": 3}}
CELLS = {"numa": {"cells": 2, "cpus": 8, "reserved": 1, "policy": "single-numa-node"}}
CONFIG = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
  - name: numa-aware
"""
GUARANTEED = {"cpu": "3", "memory": "1Gi"}


def having(name: str, devices: dict[str, Any], **annotations: str) -> dict[str, Any]:
    made = node(name, cpu="8")
    made["metadata"]["uid"] = name
    made["metadata"].setdefault("annotations", {}).update({ANNOTATION: json.dumps(devices), **annotations})
    return made


def on(made: dict[str, Any], name: str, **annotations: str) -> dict[str, Any]:
    """The pod, bound there with these annotations."""
    made["spec"]["nodeName"] = name
    made["metadata"].setdefault("uid", made["metadata"]["name"])
    made["metadata"].setdefault("annotations", {}).update(annotations)
    return made


def limited(made: dict[str, Any], limits: dict[str, str]) -> dict[str, Any]:
    """The pod with these limits, and requests alike."""
    made["spec"]["containers"][0]["resources"] = {"limits": limits, "requests": limits}
    return made


def said(request: Any) -> Any:
    return unpack(request.blob)


def assigned(*devices: str) -> dict[str, str]:
    text = "".join(f"{uuid},NVIDIA,1024,10:" for uuid in devices)
    return {vgpu.TO_ALLOCATE: text, vgpu.IDS: text, vgpu.BIND_PHASE: "allocating"}


def test_cards_are_registered_and_reported_alive_again_and_again() -> None:
    machine = DevicePluginMachine()
    machine.observe("Node", having("n0", CARDS), 1)
    status, annotations = machine.step(100.0)
    assert isinstance(status, UpdateStatus)
    amounts = {"volcano.sh/vgpu-number": "6", "volcano.sh/vgpu-memory": "32768", "volcano.sh/vgpu-cores": "200"}
    assert said(status) == {"capacity": amounts, "allocatable": amounts}
    written = said(annotations)["metadata"]["annotations"]
    assert [card.uuid for card in vgpu.registered(written[vgpu.REGISTER])] == ["GPU-n0-0", "GPU-n0-1"]
    assert written[HANDSHAKE].startswith("Reported 1970-")
    assert machine.step(101.0) == []
    assert machine.next_due() == 100.0 + ALIVE_S
    assert machine.running_timers() == 0
    (again,) = machine.step(100.0 + ALIVE_S)
    assert said(again)["metadata"]["annotations"][HANDSHAKE] != written[HANDSHAKE]
    machine.observe("Node", {"metadata": {"name": "n0"}}, 2, deleted=True)
    assert machine.next_due() is None


def test_a_node_that_lost_what_was_reported_is_told_again_and_others_are_left_alone() -> None:
    machine = DevicePluginMachine()
    machine.observe("Node", node("plain"), 1)
    assert machine.step(0.0) == []
    machine.observe("Node", having("n0", {"gpu": {"cards": 2, "memory": 100}}), 1)
    (status,) = machine.step(0.0)
    assert said(status)["capacity"] == {"volcano.sh/gpu-number": "2", "volcano.sh/gpu-memory": "200"}
    machine.observe("Node", having("n0", {"gpu": {"cards": 2, "memory": 100}}), 2)
    assert len(machine.step(1.0)) == 1


@pytest.mark.parametrize(("card", "phase"), [("GPU-n0-1", "success"), ("GPU-elsewhere-0", "failed")])
def test_a_pod_gets_its_cards_or_fails_and_the_lock_is_let_go(card: str, phase: str) -> None:
    machine = DevicePluginMachine()
    machine.observe("Node", having("n0", CARDS, **dict.fromkeys(LOCKS[:2], "now")), 1)
    machine.step(0.0)
    machine.observe("Pod", on(pod("p"), "n0", **assigned(card)), 2)
    handed, unlocked, *failed = machine.step(1.0)
    expected = {vgpu.BIND_PHASE: phase, vgpu.TIME: NEVER, **({vgpu.TO_ALLOCATE: ""} if phase == "success" else {})}
    assert said(handed) == {"metadata": {"annotations": expected}}
    assert said(unlocked) == {"metadata": {"annotations": dict.fromkeys(LOCKS[:2])}}
    assert [said(each)["phase"] for each in failed] == (["Failed"] if phase == "failed" else [])
    assert machine.step(2.0) == []


def test_a_pod_with_a_share_of_a_plain_card_is_marked_and_pods_elsewhere_are_not() -> None:
    machine = DevicePluginMachine()
    machine.observe("Node", having("n0", {"gpu": {"cards": 1, "memory": 100}}, gpu="now"), 1)
    machine.step(0.0)
    machine.observe("Pod", on(pod("p"), "n0", **{"volcano.sh/gpu-index": "0"}), 2)
    machine.observe("Pod", on(pod("q"), "else", **{"volcano.sh/gpu-index": "0"}), 3)
    marked, unlocked = machine.step(1.0)
    assert said(unlocked) == {"metadata": {"annotations": {"gpu": None}}}
    assert isinstance(marked, Patch)
    assert (marked.name, said(marked)["metadata"]["annotations"]) == ("p", {ASSIGNED: "true"})


def free(request: Any) -> str:
    return str(said(request)["spec"]["numares"]["cpu"]["allocatable"])


def test_cells_are_reported_as_pods_come_and_go() -> None:
    machine = CellReportsMachine()
    machine.observe("Node", having("n0", CELLS), 1)
    (made,) = machine.step(0.0)
    assert isinstance(made, Create)
    spec = said(made)["spec"]
    assert spec["policies"] == {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "single-numa-node"}
    assert spec["cpuDetail"]["5"] == {"numa": 1, "socket": 1, "core": 5}
    assert free(made) == "1-7"
    first = on(limited(pod("p"), GUARANTEED), "n0")
    machine.observe("Pod", first, 2)
    (less,) = machine.step(1.0)
    assert isinstance(less, Patch)
    assert free(less) == "4-7"
    (assigned,) = said(less)["spec"]["podAllocations"]
    assert (assigned["namespace"], assigned["name"]) == ("default", "p")
    machine.observe("Pod", on(pod("q", cpu="3"), "n0"), 3)  # not guaranteed: shares what is left
    assert machine.step(2.0) == []
    machine.observe("Pod", on(limited(pod("r"), GUARANTEED), "n0"), 4)
    assert free(machine.step(3.0)[0]) == "7"
    machine.observe("Pod", on(limited(pod("s"), GUARANTEED), "n0"), 5)
    (refused,) = machine.step(4.0)
    assert said(refused)["reason"] == "TopologyAffinityError"
    machine.observe("Pod", first, 6, deleted=True)
    assert free(machine.step(5.0)[0]) == "1-3,7"
    machine.observe("Node", {"metadata": {"name": "n0"}}, 7, deleted=True)
    assert [type(each) for each in machine.step(6.0)] == [Delete]


def test_what_is_there_already_is_changed_and_not_made() -> None:
    machine = CellReportsMachine()
    machine.observe("Numatopology", {"metadata": {"name": "n0"}}, 1)
    machine.observe("Node", having("n0", CELLS), 2)
    assert [type(each) for each in machine.step(0.0)] == [Patch]


def test_cells_are_as_equal_as_may_be() -> None:
    places = topology_of(NumaCells(3, 8)).places
    assert [place.cell for place in places.values()] == [0, 0, 0, 1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    "text",
    [
        "no",
        '{"vgpu": {}}',
        '{"vgpu": {"cards": 0, "memory": 1}}',
        '{"fpga": 1}',
        '{"numa": {"cells": 1, "cpus": 4, "policy": "x"}}',
        '{"vgpu": {"cards": 1, "memory": 1, "type": "a,b"}}',
    ],
)
@pytest.mark.anyio
async def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_devices(text)
    made = node("n0")
    made["metadata"] = {"name": "n0", "annotations": {ANNOTATION: text}}  # a new one: what exists is not judged
    async with started() as system:
        (answer,) = await system.submit([made])
        assert isinstance(answer, Refused)
        assert ANNOTATION in answer.message


@pytest.mark.anyio
async def test_pods_share_cards_from_a_plain_manifest_to_their_start() -> None:
    wanted = {"cpu": "1", "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "9000"}
    members = [limited(pod(f"g-{n}", group="g", duration="0"), wanted) for n in range(2)]
    async with started(settings=replace(QUICK, config_text=CONFIG)) as system:
        await system.submit([having("n0", CARDS), pod_group("g", min_member=2), *members])
        await idle(system)
        assert set(placed(system).values()) == {"n0"}
        notes = [each["metadata"]["annotations"] for each in stored(system, "Pod")]
        assert {each[vgpu.BIND_PHASE] for each in notes} == {"success"}
        cards = [vgpu.assigned(each[vgpu.IDS])[0][0].uuid for each in notes]
        assert sorted(cards) == ["GPU-n0-0", "GPU-n0-1"]  # 9000 MiB do not fit twice into 16384


@pytest.mark.anyio
async def test_pods_get_cells_and_give_them_back() -> None:
    async with started(settings=replace(QUICK, config_text=CONFIG)) as system:
        policy = {"volcano.sh/numa-topology-policy": "single-numa-node", "pumice.dev/duration": "10ms"}
        members = [limited(pod(f"g-{n}", group="g", annotations=policy), GUARANTEED) for n in range(2)]
        await system.submit([having("n0", CELLS), pod_group("g", min_member=2), *members])
        await idle(system)
        assert len(placed(system)) == 2
        (cells,) = stored(system, "Numatopology")
        assert cells["spec"]["numares"]["cpu"]["allocatable"] in {"1-7", "7"}
