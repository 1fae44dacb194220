"""Kubelets that are dead or slow, clocks that differ, nodes that are lost."""

from __future__ import annotations

from typing import Any

from pumice.cluster.faults.decisions import FaultsInForce
from pumice.cluster.faults.nodes import StruckKubelets, StruckNodes, of_pods, of_reports
from pumice.cluster.faults.rules import DeadKubelet, FaultProfile, LostNode, NodeFault, SkewedClock, SlowKubelet
from pumice.cluster.kube.statuses import timestamp
from pumice.cluster.machine import Machine
from pumice.core.messages.commands import ApiRequest, Delete, EvictPod, Patch, UpdateStatus
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack, unpack

BEGAN = 1_700_000_000.0


class Kubelets(Machine):
    """Says what a test has it say."""

    kinds = ("Node",)

    def __init__(self) -> None:
        self.say: list[ApiRequest] = []

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Know nothing."""

    def step(self, now: float) -> list[ApiRequest]:
        said, self.say = self.say, []
        return said


class Rig:
    """Two nodes, one kubelet machine for their heartbeats and one for their pods, `pod on node`."""

    def __init__(self, *rules: NodeFault) -> None:
        self.faults = FaultsInForce()
        self.faults.begin(FaultProfile(rules=rules), BEGAN)
        nodes = StruckNodes(self.faults)
        self.beats, self.pods = Kubelets(), Kubelets()
        self.struck = [
            StruckKubelets(self.beats, nodes, of_reports, speaks=True),
            StruckKubelets(self.pods, nodes, of_pods(lambda _, name: name.partition("-")[2])),
        ]
        for name, zone in (("a", "x"), ("b", "y")):
            ready = {"type": "Ready", "status": "True"}
            labels = {"zone": zone}
            node = {"metadata": {"name": name, "labels": labels}, "status": {"conditions": [ready]}}
            self.struck[0].observe("Node", node, 1)

    def at(self, seconds: float, *said: ApiRequest) -> list[ApiRequest]:
        """What arrives then."""
        for request in said:
            (self.pods if getattr(request, "kind", "Pod") == "Pod" else self.beats).say.append(request)
        return [request for machine in self.struck for request in machine.step(BEGAN + seconds)]


def report(pod: str, **status: Any) -> UpdateStatus:
    return UpdateStatus("Pod", "ns", pod, pack(status))


def heartbeat(node: str) -> Patch:
    return Patch("Lease", "kube-node-lease", node, b"")


def test_without_rules_all_arrives_and_nothing_is_due() -> None:
    rig = Rig()
    said: list[ApiRequest] = [heartbeat("a"), report("p-a"), Delete("Pod", "ns", "p-b")]
    assert rig.at(1, *said) == said
    assert [each.next_due() for each in rig.struck] == [None, None]


def test_a_dead_kubelet_is_silent_until_it_is_back() -> None:
    rig = Rig(DeadKubelet(rule="dead", name="a", from_s=10, until_s=100, grace_s=40))
    assert rig.at(5, report("p-a", phase="Running")) == [report("p-a", phase="Running")]
    assert rig.struck[0].next_due() == BEGAN + 10
    lost: list[ApiRequest] = [heartbeat("a"), report("p-a", phase="Failed"), Delete("Pod", "ns", "p-a")]
    heard: list[ApiRequest] = [heartbeat("b"), report("q-b", phase="Running"), EvictPod("ns", "p-a", "uid")]
    assert rig.at(10, *lost, *heard) == heard
    assert rig.struck[0].next_due() == BEGAN + 50
    (told,) = rig.at(50)
    assert isinstance(told, UpdateStatus)
    assert (told.kind, told.name) == ("Node", "a")
    assert unpack(told.blob)["conditions"][0]["status"] == "Unknown"
    assert rig.at(60) == []
    (back, late, gone) = sorted(rig.at(100), key=lambda each: getattr(each, "kind", "") != "Node")
    assert unpack(back.blob)["conditions"][0]["status"] == "True"  # type: ignore[union-attr]
    assert [late, gone] == lost[1:]
    assert [(each.rule, each.kind, each.name) for each in rig.faults.take_untold()] == [("dead", "Node", "a")]


def test_a_slow_kubelet_is_late_and_in_order() -> None:
    rig = Rig(SlowKubelet(labels="zone=x", delay_s=5, until_s=8))
    first, second, third = (report("p-a", number=number) for number in range(3))
    assert rig.at(1, first) == []
    assert rig.struck[1].next_due() == BEGAN + 6
    assert rig.at(4, second, report("p-b")) == [report("p-b")]
    assert rig.at(6) == [first]
    assert rig.at(8.5, third) == []  # the rule is over, and what was said before comes before
    assert rig.at(9) == [second, third]


def test_a_skewed_clock_is_in_every_time_of_a_report() -> None:
    rig = Rig(SkewedClock(name="a", ahead_s=-60))
    at = timestamp(BEGAN)
    status = {"startTime": at, "containerStatuses": [{"state": {"running": {"startedAt": at}}}], "message": f"at {at}"}
    (told,) = rig.at(0, report("p-a", **status))
    assert isinstance(told, UpdateStatus)
    shown = unpack(told.blob)
    assert shown["startTime"] == shown["containerStatuses"][0]["state"]["running"]["startedAt"] == timestamp(BEGAN - 60)
    assert shown["message"] == status["message"]
    assert rig.at(0, report("p-b", startTime=at)) == [report("p-b", startTime=at)]


def test_a_lost_node_is_removed_once() -> None:
    rig = Rig(LostNode(name="a", from_s=3))
    assert [rig.at(second) for second in (2, 3, 4)] == [[], [Delete("Node", "", "a", user="cloud-node-lifecycle")], []]
    rig.struck[0].observe("Node", {"metadata": {"name": "a"}}, 2, deleted=True)
    assert rig.at(5, Delete("Pod", "ns", "p-a")) == [Delete("Pod", "ns", "p-a")]  # by the garbage collector


def test_a_share_of_the_nodes_is_drawn_from_the_seed() -> None:
    faults = FaultsInForce(seed=3)
    faults.begin(FaultProfile(rules=(DeadKubelet(rule="some", probability=0.3),)), 0.0)
    struck = [bool(faults.of_node(f"n{number}", {}, 1.0)) for number in range(500)]
    assert struck == [bool(faults.of_node(f"n{number}", {}, 2.0)) for number in range(500)]
    assert 110 < sum(struck) < 190
