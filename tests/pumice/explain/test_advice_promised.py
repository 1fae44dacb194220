"""Room that is promised and never comes is no help, and is not told as room to come."""

from __future__ import annotations

from typing import Any

from config.load import parse_scheduler_config
from core.session.carry import Carry, CycleClock
from pumice.explain.account import account_of
from pumice.explain.advice.advise import advise
from pumice.explain.scene import Scene
from pumice.oneshot.cycles import fill
from tests.kit.jobs import gang
from tests.kit.nodes import node, nodes, taint
from tests.kit.priority_classes import priority_class
from tests.kit.queues import queue

Object = dict[str, Any]
CONFIG = """\
actions: "enqueue, allocate{}, backfill"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins: [{{name: predicates}}, {{name: proportion}}, {{name: nodeorder}}]
"""
NAME = "default/g"


def scene(*objects: Object, preempt: bool) -> Scene:
    given = [queue("default"), *objects]
    config = parse_scheduler_config(CONFIG.format(", preempt" * preempt), source="test")
    return Scene(fill(given), config, CycleClock(1, 1_800_000_000.0, 0), Carry(), objects=lambda: given)


def apart() -> list[Object]:
    """A gang of three, one on each host: one host is clean, one tainted, one cordoned."""
    cordoned = node("n2")
    cordoned.setdefault("spec", {})["unschedulable"] = True
    objects = [node("n0"), node("n1", taints=[taint("team", "x")]), cordoned, *gang("g", pods=3)]
    for obj in objects:
        if obj["kind"] == "Pod":
            obj["metadata"]["labels"] = {"app": "g"}
            term = {"labelSelector": {"matchLabels": {"app": "g"}}, "topologyKey": "kubernetes.io/hostname"}
            obj["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        elif obj["kind"] == "Node":
            obj["metadata"].setdefault("labels", {})["kubernetes.io/hostname"] = obj["metadata"]["name"]
    return objects


BOTH = "3 of 3 fit with: tolerate taint team=x:NoSchedule; also uncordon node n2"


def test_an_action_that_only_promises_is_no_help() -> None:
    found = advise(scene(*apart(), preempt=False), "podgroup", NAME, 30.0)
    assert BOTH in found.sentences
    assert not any("action preempt" in each for each in found.sentences), found.sentences


def test_who_has_only_a_promise_is_told_what_keeps_it_and_what_helps() -> None:
    """Preempt promises all three the clean node, where nobody goes."""
    here = scene(*apart(), preempt=True)
    account = account_of(here, "podgroup", NAME)
    assert set(account.tasks.values()) == {"Pipelined"}
    assert account.reason == "Unschedulable"
    for word in ("nobody goes", "anti-affinity", "untolerated taint", "unschedulable"):
        assert word in account.message
    assert "is being released" not in account.message
    assert BOTH in advise(here, "podgroup", NAME, 30.0).sentences


def occupied(policy: str | None) -> list[Object]:
    """All room is held by pods of the class middle."""
    strong = priority_class("strong", 9)
    if policy:
        strong["preemptionPolicy"] = policy
    return [
        *nodes(2, cpu="4"),
        priority_class("low", 1),
        priority_class("middle", 5),
        strong,
        *gang(
            "r", pods=4, min_member=1, cpu="2", phase="Running", nodes=["n0", "n0", "n1", "n1"], priority_class="middle"
        ),
        *gang("g", pods=2, cpu="2", phase="Inqueue", priority_class="low"),
    ]


def test_room_that_is_made_counts_when_those_who_held_it_are_gone() -> None:
    found = advise(scene(*occupied(None), preempt=True), "podgroup", NAME, 30.0)
    assert "2 of 2 fit (2 pods are evicted for it) with: priority class strong" in found.sentences


def test_a_class_that_never_preempts_is_no_help() -> None:
    found = advise(scene(*occupied("Never"), preempt=True), "podgroup", NAME, 30.0)
    assert not any("strong" in each for each in found.sentences), found.sentences


def test_who_waits_for_room_that_is_released_is_told_so() -> None:
    leaving = gang("r", pods=1, cpu="4", phase="Running", nodes=["n0"])
    leaving[1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    account = account_of(
        scene(node("n0", cpu="4"), *leaving, *gang("g", pods=1, cpu="4"), preempt=True), "pod", "default/g-0"
    )
    assert account.message == "default/g-0 waits for room that is being released on n0"
