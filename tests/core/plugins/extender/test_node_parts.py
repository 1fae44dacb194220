"""What an extender is told of a node beside amounts and tasks: devices, cells, images, load."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pumice.core.cycle import CycleClock, open_session, run_action
from pumice.core.messages.questions import OutsideAnswer, OutsideQuestion
from pumice.core.objects.metadata import Object
from pumice.core.outside import filled
from pumice.core.session.carry import Carry, SessionOptions
from pumice.questions.oneshot.cycles import fill
from tests.core.devices.cards import gpu_node, vgpu_node
from tests.core.plugins.test_deviceshare import asks
from tests.core.plugins.world import configuration
from tests.kit import gang, node, queue

HERE: Object = {
    "name": "extender",
    "arguments": {"extender.urlPrefix": "http://e", "extender.predicateVerb": "predicate"},
}
CELLS: Object = {
    "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
    "kind": "Numatopology",
    "metadata": {"name": "n0"},
    "spec": {
        "policies": {"CPUManagerPolicy": "static"},
        "numares": {"cpu": {"allocatable": "0-1", "capacity": 2}},
        "cpuDetail": {"0": {}, "1": {"numa": 1, "socket": 1, "core": 1}},
        "resReserved": {"cpu": "100m"},
    },
}


class Listening:
    """Agrees, and keeps what it was told of nodes."""

    def __init__(self) -> None:
        self.nodes: list[Object] = []

    def __call__(self, questions: Sequence[OutsideQuestion]) -> list[OutsideAnswer]:
        for asked in questions:
            pods = [json.dumps({"pod": pod.name}).encode() for pod in asked.pods]
            self.nodes.append(json.loads(filled(asked, pods))["node"])
        return [OutsideAnswer(200, b"{}")] * len(questions)


def told(objects: Sequence[Object], usage: Object | None = None, **switches: Any) -> list[Object]:
    arguments = {f"deviceshare.{name}": value for name, value in switches.items()}
    config = configuration(["gang", "predicates", {"name": "deviceshare", "arguments": arguments}, HERE])
    listening, options = Listening(), SessionOptions(node_usage=usage)
    view = fill([queue("default"), *objects])
    session = open_session(view.snapshot(), config, CycleClock(1, 1e9, 0), Carry(), options, ask=listening)
    run_action(session, "allocate")
    return listening.nodes


def test_images_and_load_and_cells() -> None:
    here, there = node("n0"), node("n1")
    here["status"]["images"] = [{"names": ["a", "a:1"], "sizeBytes": 7}, {"names": ["b"], "sizeBytes": 5}]
    there["status"]["images"] = [{"names": ["b"], "sizeBytes": 6}]
    load = {"n0": {"cpu": {"10m": 41.5}, "memory": {}, "measuredAt": "2001-09-09T01:46:40Z"}}
    by_name = {each["Name"]: each for each in told([here, there, CELLS, *gang("g", pods=1, phase="Inqueue")], load)}
    alone, both = {"Size": 7, "NumNodes": 1, "Nodes": None}, {"Size": 5, "NumNodes": 2, "Nodes": None}
    assert by_name["n0"]["ImageStates"] == {"a": alone, "a:1": alone, "b": both}
    usage = {"MetricsTime": "2001-09-09T01:46:40Z", "CPUUsageAvg": {"10m": 41.5}, "MEMUsageAvg": {}}
    assert by_name["n0"]["ResourceUsage"] == usage
    assert by_name["n1"]["ResourceUsage"]["MetricsTime"] == "0001-01-01T00:00:00Z"
    resource: Object = {"Allocatable": {}, "Capacity": 2, "AllocatablePerNuma": {}, "UsedPerNuma": {}}
    assert (
        by_name["n0"]["NumaInfo"]
        == by_name["n0"]["NumaSchedulerInfo"]
        == {
            "Namespace": "",
            "Name": "n0",
            "Policies": {"CPUManagerPolicy": "static"},
            "NumaResMap": {"cpu": resource},
            "CPUDetail": {
                "0": {"NUMANodeID": 0, "SocketID": 0, "CoreID": 0, "UncoreCacheID": 0},
                "1": {"NUMANodeID": 1, "SocketID": 1, "CoreID": 1, "UncoreCacheID": 0},
            },
            "ResReserved": {"cpu": "100m"},
        }
    )
    assert (by_name["n1"]["NumaInfo"], by_name["n1"]["Others"]) == (None, {})


def test_cards_with_who_has_what_of_them() -> None:
    pods = asks(gang("g", pods=2, phase="Inqueue"), vgpu_number=1, vgpu_memory=10)
    first, second = told([vgpu_node("n0", [(2, 100, "NVIDIA-A100")]), *pods], VGPUEnable=True)
    (card,) = first["Others"]["hamivgpu"]["Device"].values()
    assert (card["UsedNum"], card["PodMap"], card["MigUsage"]) == (0, {}, {"Index": -1, "UsageList": []})
    others = second["Others"]["hamivgpu"]
    assert {**others, "Device": {}} == {"Name": "n0", "Mode": "hami-core", "Score": 0, "Device": {}, "Sharing": {}}
    (card,) = others["Device"].values()
    (user,) = card.pop("PodMap").values()
    assert user == {"UsedMem": 10, "UsedCore": 0, "PodGroupKey": "default/g"}
    assert card == {
        "ID": 0, "Node": "n0", "UUID": "n0-0", "Memory": 100, "Number": 2, "Type": "NVIDIA-A100", "Health": True,
        "UsedNum": 1, "UsedMem": 10, "UsedCore": 0, "MigTemplate": None, "MigUsage": {"Index": -1, "UsageList": []},
    }  # fmt: skip


def test_shared_cards_with_their_pods_whole_and_nodes_without() -> None:
    pods = asks(gang("g", pods=2, phase="Inqueue"), gpu_memory=10)
    nodes = told([gpu_node("n0", 2, 200), node("n1"), *pods], GPUSharingEnable=True)
    last = [each["Others"]["GpuShare"] for each in nodes if each["Name"] == "n0"][-1]
    (user,) = last["Device"]["0"].pop("PodMap").values()
    assert user["pod"].startswith("g-")
    assert last == {
        "Name": "n0",
        "Device": {"0": {"ID": 0, "Memory": 100}, "1": {"ID": 1, "PodMap": {}, "Memory": 100}},
    }
    assert {json.dumps(each["Others"]) for each in nodes if each["Name"] == "n1"} <= {'{"GpuShare": null}'}
