"""What gangpreempt and gangreclaim did about a job, HyperNode by HyperNode: the step that stopped them comes first."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import Object
from pumice.core.session.carry import Carry, CycleClock
from pumice.questions.explain.account import StepsTold, account_of
from pumice.questions.explain.scene import Scene
from pumice.questions.oneshot.cycles import fill
from tests.kit.budgets import budget
from tests.kit.hyper_nodes import hyper_node
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.priority_classes import priority_class
from tests.kit.queues import queue

CONFIG = """\
actions: "enqueue, allocate, %s"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, %s]
- plugins: [{name: predicates}, {name: nodeorder}, {name: network-topology-aware}]
configurations: [{name: gangpreempt, arguments: {allowWholeBundle: %s}}]
"""
WORLD = [queue("default"), queue("q"), priority_class("low", 1), priority_class("high", 9)]
NODES = [node("n0", cpu="4"), node("n1", cpu="4")]
RACKS = [hyper_node("r0", 1, nodes=["n0"]), hyper_node("r1", 1, nodes=["n1"])]
FULL = ["n0"] * 4 + ["n1"] * 4


def steps(action: str, *objects: Object, plugin: str = "{name: proportion}", whole: str = "true") -> StepsTold:
    given = [*WORLD, *objects]
    config = parse_scheduler_config(CONFIG % (action, plugin, whole), source="test")
    scene = Scene(fill(given), config, CycleClock(1, 1_800_000_000.0, 0), Carry(), objects=lambda: given)
    account = account_of(scene, "podgroup", "default/g")
    return next(each for each in account.job.get("steps", []) if each["action"] == action)


def low(least: int, placed: list[str] = FULL, **more: Any) -> list[Object]:
    kept = {"priority_class": "low", "phase": "Running", **more}
    return gang("low", pods=len(placed), min_member=least, nodes=placed, **kept)


def new(pods: int, cpu: str, name: str = "g", **more: Any) -> list[Object]:
    return gang(name, pods=pods, cpu=cpu, phase="Inqueue", priority_class="high", **more)


def hard(objects: list[Object]) -> list[Object]:
    group, *pods = objects
    topology = {"mode": "hard", "highestTierAllowed": 1}
    return [{**group, "spec": {**group["spec"], "networkTopology": topology}}, *pods]


def critical(objects: list[Object]) -> list[Object]:
    for one in objects[1:]:
        one["spec"]["priorityClassName"] = "system-node-critical"
    return objects


STOPPED: dict[str, tuple[str, list[Object], str]] = {
    "nobody to ask": (
        "gangpreempt",
        [*NODES, *low(4, priority_class="high"), *new(2, "2")],
        ("there were no candidates: 8 pods of other jobs of queue default hold room, 8 of no lower priority than 9"),
    ),
    "not preemptable": (
        "gangpreempt",
        [*NODES, *low(4, annotations={"volcano.sh/preemptable": "false"}), *new(2, "2")],
        "there were no candidates: 8 pods of other jobs of queue default hold room, 8 not preemptable",
    ),
    "too little": (
        "gangpreempt",
        [*NODES, *low(0), *new(3, "4")],
        "evictions would not make enough room (short of cpu) in the whole cluster",
    ),
    "it is well": ("gangpreempt", [*NODES, *low(0), *new(2, "3")], ""),
    "in every rack": (
        "gangpreempt",
        [*NODES, *RACKS, *low(0), *hard(new(2, "4"))],
        "evictions would not make enough room (short of cpu) in 2 HyperNodes",
    ),
    "the trial": (
        "gangpreempt",
        [*NODES, *low(0), *new(2, "4", node_selector={"zone": "a"})],
        "all of them gone, it would still not find room (no node for default/g-0) in the whole cluster",
    ),
    "the system's": (
        "gangpreempt",
        [*NODES, *critical(low(0)), *new(1, "1")],
        (
            "none of 8 considered pods may be evicted: tier 1: conformance gave 0 of 8, kept "
            "default/low-0, default/low-1, default/low-2, … (the system needs them)"
        ),
    ),
    "no rack may hold it": (
        "gangpreempt",
        [*NODES, hyper_node("r0", 2, nodes=["n0"]), *low(0), *hard(new(2, "4"))],
        "no HyperNode may hold it",
    ),
    "its queue": (
        "gangreclaim",
        [*NODES, *low(0, queue="q"), *new(9, "1")],
        ("its queue may not take from others (queue default has nothing and deserves 4 cpu, 9Gi memory, 9 pods)"),
    ),
    "starving": (
        "gangpreempt",
        [*NODES, *gang("g", pods=2, phase="Running", nodes=["n0", "n1"])],
        "not starving: 2 ready + 0 waiting, its minimum is 2",
    ),
}


@pytest.mark.parametrize("case", STOPPED)
def test_the_step_that_stopped_it_is_named(case: str) -> None:
    action, objects, sentence = STOPPED[case]
    assert steps(action, *objects)["stopped"] == sentence


def test_a_gang_that_would_break_is_spared_where_that_is_said() -> None:
    told = steps("gangpreempt", *NODES, *low(8), *new(2, "4"), whole="false")
    assert told["stopped"] == (
        "only by breaking gangs would there be room, which allowWholeBundle forbids in the whole cluster"
    )
    assert steps("gangpreempt", *NODES, *low(8), *new(2, "4"))["stopped"] == ""


def test_every_rack_is_told_of() -> None:
    """In one there is nobody to ask, in the other one there is too little."""
    told = steps("gangpreempt", *NODES, *RACKS, *low(0, ["n0"] * 4), *hard(new(2, "4")))
    assert "evictions would not make enough room (short of cpu) in HyperNode r0" in told["steps"]
    assert "no pod there may be asked to go in HyperNode r1" in told["steps"]
    assert "pods considered: 4, on nodes: 1, may be evicted: 4" in told["steps"]


def test_what_was_promised_is_said() -> None:
    told = steps("gangpreempt", *NODES, *RACKS, *low(0), *hard(new(2, "2")))
    assert (told["stopped"], told["steps"]) == ("", ["committed (r0)"])


# --- who keeps victims


def split(**more: Any) -> list[Object]:
    """Two queues of two cores each; one holds its two, and each node has a core to spare: two are asked for in one."""
    small = [node("n0", cpu="2", memory="9Gi"), node("n1", cpu="2", memory="9Gi")]
    held = gang("low", pods=2, min_member=0, queue="others", phase="Running", nodes=["n0", "n1"])
    asked = gang("g", pods=1, cpu="2", queue="mine", phase="Inqueue")
    return [*small, queue("others", **more), queue("mine", **more), *held, *asked]


DUE = {"cpu": "2", "memory": "4Gi", "pods": "9"}


@pytest.mark.parametrize(
    ("keeper", "deserved", "action"),
    [("proportion", None, "reclaim"), ("capacity", DUE, "reclaim"), ("capacity", DUE, "gangreclaim")],
)
def test_queues_keep_what_they_deserve(keeper: str, deserved: dict[str, str] | None, action: str) -> None:
    told = steps(action, *split(deserved=deserved), plugin=f"{{name: {keeper}}}")
    said = f"tier 1: {keeper} gave 0 of 2, kept default/low-0, default/low-1 (queue others has 2 cpu, "
    assert told["stopped"].startswith(f"none of 2 considered pods may be evicted: {said}"), told
    assert " and deserves 2 cpu, " in told["stopped"]


def test_conformance_keeps_what_the_system_needs() -> None:
    objects = [*NODES, *critical(low(0)), *new(1, "1")]
    told = steps("preempt", *objects)
    assert told["stopped"] == (
        "none of 8 considered pods may be evicted: tier 1: conformance gave 0 of 8, kept "
        "default/low-0, default/low-1, default/low-2, … (the system needs them)"
    )


def test_budgets_and_cooldowns_keep_pods() -> None:
    """Of the first no disruption is allowed, and the others were scheduled just now."""
    objects = [*NODES, *low(0, labels={"app": "web", "volcano.sh/cooldown-time": "1h"}), *new(1, "1")]
    for each in objects[3:11]:
        moment = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2027-01-15T07:59:00Z"}
        each["status"]["conditions"] = [moment]
    held = {**budget(), "status": {"disruptionsAllowed": 0}}
    told = steps("preempt", held, *objects, plugin="{name: pdb}, {name: cdp}")
    kept = "kept default/low-0, default/low-1, default/low-2, …"
    assert f"tier 1: pdb gave 0 of 8, {kept} (their budgets allow no more disruptions)" in told["steps"], told
    told = steps("preempt", *objects, plugin="{name: cdp}")
    assert f"tier 1: cdp gave 0 of 8, {kept} (their cooldown is not over)" in told["steps"], told
