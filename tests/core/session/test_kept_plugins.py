"""A session that goes on decides what a new one decides, under plugins that are drawn, on a cluster that changes for
them: labels, queues' affinities, domains, loads, hours and cards.
"""

from __future__ import annotations

import json
import random
import weakref
from collections import Counter
from typing import Any, Final

import pytest

from pumice.cluster.kube.statuses import timestamp
from pumice.config.schema import SchedulerConfig
from pumice.core.cycle import Carry, CycleClock, Session, close_session, open_session, run_action, run_cycle
from pumice.core.objects.metadata import Object
from pumice.core.plugins import record_of
from pumice.core.plugins.usage import MOMENT_S
from pumice.core.state.view import View
from pumice.questions.oneshot.between import pod_group_after
from tests.core.plugins.world import configuration
from tests.core.session.test_kept_sessions import NOW, Settling, demand_alike, renewed, uncollected
from tests.kit import gang, node, priority_class, queue
from tests.kit.hyper_nodes import hyper_node

__all__ = ["renewed", "uncollected"]

NODES: Final = ("n0", "n1", "n2", "n3", "n4")
SCARCE: Final = "volcano.sh/gpu-memory"
SHARED, VIRTUAL = {SCARCE: "6"}, {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "600"}
ZONE: Final = "volcano.sh/revocable-zone"
DRAWN: Final[dict[str, tuple[Object, ...]]] = {
    "cdp": ({},),
    "deviceshare": (
        {"deviceshare.GPUSharingEnable": True},
        {"deviceshare.GPUSharingEnable": True, "deviceshare.NodeLockEnable": True},
        {"deviceshare.VGPUEnable": True, "deviceshare.ScheduleWeight": 10, "deviceshare.SchedulePolicy": "binpack"},
    ),
    "network-topology-aware": ({}, {"weight": 3, "hypernode.binpack.normal-pod.enable": False}),
    "nodegroup": ({"strict": False}, {"strict": False, "enablePreferredOrder": True}, {}),
    "resource-strategy-fit": (
        {},
        {"sra": {"enable": True, "resources": SCARCE, "weight": 2, "resourceWeight": {SCARCE: 1}}},
        {"proportional": {"enable": True, "resources": SCARCE, "resourceProportion": {f"{SCARCE}.cpu": 0.1}}},
    ),
    "task-topology": ({}, {"task-topology.weight": 10}),
    # The clock starts at 08:00.
    "tdm": ({"tdm.revocable-zone.z0": "08:02-08:20", "tdm.revocable-zone.z1": "07:00-08:05"},),
    "usage": ({"thresholds": {"cpu": 70, "mem": 70}}, {"usage.weight": 2, "cpu.weight": 3}),
}
"""Plugins that go on, with arguments to draw from."""
PLACERS: Final = ("nodeorder", "binpack")
ACTIONS: Final = ("enqueue", "allocate", "preempt", "reclaim", "backfill")
FIXES: Final = ("topology-idle-follows", "nodegroup-refusal-counts")


def drawn(chance: random.Random, *certain: str) -> SchedulerConfig:
    """A configuration with some of the plugins, in any order."""
    names = sorted({*certain, *chance.sample(sorted(DRAWN), chance.choice([0, 1, 2]))})
    options: list[Any] = [{"name": name, "arguments": chance.choice(DRAWN[name])} for name in names]
    options += ["predicates", chance.choice(["proportion", "capacity"]), *chance.sample(PLACERS, chance.choice([1, 2]))]
    chance.shuffle(options)
    first = ["priority", "gang", "conformance"][: chance.choice([2, 3])]
    return configuration(first, options, actions=ACTIONS, fix=chance.sample(FIXES, chance.choice([0, 1, 2])))


class Varied(Settling):
    """The same cluster, with all that these plugins read: it changes, and so does the hour."""

    def __init__(self, seed: int, *certain: str) -> None:
        chance = random.Random(-1 - seed)
        super().__init__(seed, drawn(chance, *certain), lonely=chance.choice([0.0, 0.05]))
        self.is_crowded = chance.choice([True, False])
        for each in (priority_class("high", 10), *self._domains()):
            self.view.apply("ADDED", each)

    def node(self, name: str, *, cpu: str) -> Object:
        """Make a node of a group, with cards or without."""
        labels = {"volcano.sh/nodegroup-name": group} if (group := self.chance.choice(["", "g0", "g0", "g1"])) else {}
        if zone := self.chance.choice(["", "", "z0", "z1"]):
            labels |= {ZONE: zone}
        if name not in NODES[:3]:
            return node(name, cpu=cpu, labels=labels)
        cards = {SCARCE: "16", "volcano.sh/gpu-number": "2"}
        cards |= {f"volcano.sh/vgpu-{each}": "9999" for each in ("number", "memory", "cores")}
        said = "".join(f"{name}-{card},2,1000,NVIDIA-A100,true,hami-core:" for card in range(2))
        return node(name, cpu=cpu, labels=labels, annotations={"volcano.sh/node-vgpu-register": said}, extra=cards)

    def _domains(self) -> list[Object]:
        """Make two racks of nodes, and one above both."""
        first = self.chance.choice([2, 3])
        racks = hyper_node("s0", 1, nodes=NODES[:first]), hyper_node("s1", 1, nodes=NODES[first:])
        return [*racks, hyper_node("s2", 2, children=["s0", "s1"])]

    def change(self) -> None:
        """Let jobs come and go, and sometimes change what the plugins read."""
        super().change()
        kind = self.chance.random()
        if kind < 0.06:
            self.view.apply("MODIFIED", self._with_affinity(self.chance.choice(["q", "r"])))
        elif kind < 0.09:
            for each in self._domains():
                self.view.apply("MODIFIED", each)
        elif kind < 0.14:
            self.view.apply("MODIFIED", self._load(self.chance.choice(NODES)))

    def _load(self, name: str) -> Object:
        """Measure a node."""
        loads = {resource: {"10m": float(self.chance.choice([10, 60, 90]))} for resource in ("cpu", "memory")}
        metadata = {"name": name, "annotations": {"pumice.dev/node-usage": json.dumps(loads)}}
        age = self.chance.choice([0, 100, 290])
        return {"kind": "NodeMetrics", "metadata": metadata, "timestamp": timestamp(self.now - age)}

    def _with_affinity(self, name: str) -> Object:
        """Make a queue that wants groups of nodes; its limits stay."""
        known = self.view.groups.queues[name].queue
        groups = self.chance.sample(["g0", "g1"], self.chance.choice([0, 1, 2]))
        how = self.chance.choice(["required", "preferred", "preferred"]) + "DuringSchedulingIgnoredDuringExecution"
        towards = self.chance.choice(["nodeGroupAffinity", "nodeGroupAntiAffinity"])
        affinity = {towards: {how: groups}} if groups else None
        return {**queue(name), "spec": {**known["spec"], "affinity": affinity}}

    def mark(self, made: list[Object]) -> None:
        """Say what plugins read of a job and its pods."""
        group, *pods = made
        if self.chance.random() < 0.3:
            group["spec"]["priorityClassName"] = "high"
        if self.chance.random() < 0.3:
            group["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": self.chance.choice([1, 2])}
        if self.chance.random() < 0.3:
            about = self.chance.choice(["affinity", "anti-affinity"])
            group["metadata"]["annotations"] = {f"volcano.sh/task-topology-{about}": "a,b" if len(pods) > 1 else "a"}
            for place, pod in enumerate(pods):
                pod["metadata"]["annotations"]["volcano.sh/task-spec"] = "ab"[place % 2]
        notes = self._notes()
        cards = self.chance.choice([SHARED, VIRTUAL, {}, {}])
        for pod in pods:
            pod["metadata"]["annotations"] |= notes
            (container,) = pod["spec"]["containers"]
            cpu = {"cpu": "500m"} if cards else {}  # so that cards are scarcer
            requests = {**container["resources"]["requests"], **cpu, **cards}
            container["resources"] = {"requests": requests, "limits": cards}

    def _notes(self) -> dict[str, str]:
        """Make the annotations of a job's pods."""
        found = {"volcano.sh/cooldown-time": f"{self.chance.choice([5, 90])}s"} if self.chance.random() < 0.4 else {}
        if self.chance.random() < 0.4:
            found |= {"volcano.sh/preemptable": "true", **self.chance.choice([{}, {ZONE: "*"}])}
        if self.chance.random() < 0.2:
            found |= {
                "volcano.sh/resource-strategy-scoring-type": self.chance.choice(["MostAllocated", "LeastAllocated"]),
                "volcano.sh/resource-strategy-weight": json.dumps({"cpu": self.chance.choice([1, 3])}),
            }
        return found

    def pass_time(self) -> None:
        """Let seconds pass, or minutes."""
        super().pass_time()
        self.now += self.chance.choice([0, 0, 0, 30, 200])


def live(varied: Varied, cycles: int, seen: Counter[str]) -> None:
    """Decide both ways."""
    for _ in range(cycles):
        for _ in range(varied.chance.randrange(3)):
            varied.change()
        fresh, kept = varied.both()
        demand_alike(fresh, kept)
        seen["binds"] += len(kept.binds)
        seen["evicts"] += len(kept.evicts)


@pytest.mark.parametrize("plugin", sorted(DRAWN))
def test_kept_session_under_drawn_plugins_decides_as_new(plugin: str, renewed: list[bool]) -> None:
    seen = Counter[str]()
    for seed in range(5):
        live(Varied(seed, plugin), 30, seen)
    assert seen["binds"] > 10
    assert seen["evicts"] or "Preemptable" not in record_of(plugin).listens
    # On copies none can go on: half of all are asked in vain.
    assert sum(renewed) > len(renewed) / 10


@pytest.mark.slow
@pytest.mark.parametrize("plugin", sorted(DRAWN))
def test_kept_session_under_many_draws_decides_as_new(plugin: str) -> None:
    for seed in range(5, 60):
        live(Varied(seed, plugin), 30, Counter())


def crowded_view() -> View:
    """A node is busy and the other one too small for the pod that waits."""
    view = View()
    loads = {"cpu": {"10m": 90.0}, "memory": {"10m": 90.0}}
    metadata = {"name": "n0", "annotations": {"pumice.dev/node-usage": json.dumps(loads)}}
    measured: Object = {"kind": "NodeMetrics", "metadata": metadata, "timestamp": timestamp(NOW)}
    for obj in (node("n0"), node("n1", cpu="1"), queue("default"), measured, *gang("j", pods=1, cpu="4")):
        view.apply("ADDED", obj)
    return view


def test_kept_session_wakes_when_refusing_load_is_old(renewed: list[bool]) -> None:
    view, config = crowded_view(), configuration(["gang", "usage", "predicates"])
    for number in range(5):
        result = run_cycle(view.snapshot(kept=True), config, CycleClock(number, NOW + number), Carry())
        assert result.wake_at == NOW + 300 + MOMENT_S
        for written in result.pod_groups:
            view.apply("MODIFIED", pod_group_after(gang("j", pods=1)[0], written, NOW))
    assert sum(renewed) >= 2


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("plugin", sorted(DRAWN))
def test_session_that_a_change_ends_is_gone_immediately(plugin: str) -> None:
    view, sessions = crowded_view(), list[weakref.ref[Session]]()
    config = configuration(["gang"], [{"name": plugin, "arguments": DRAWN[plugin][-1]}, "predicates"])
    for number in range(8):
        view.apply("MODIFIED", node("n1", cpu="1", labels={"number": str(number)}))
        session = open_session(view.snapshot(kept=True), config, CycleClock(number, NOW), Carry(), sparing=True)
        for action in config.actions:
            run_action(session, action)
        sessions.append(weakref.ref(session))
        close_session(session)
        del session
    alive = {id(each()) for each in sessions} - {id(None)}
    assert len(alive) <= 2, "only those of the two sets of columns stay"
