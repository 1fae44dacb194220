"""What each action did about a job: the step that stopped it, who kept which victims and why, amounts at admission."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from pumice.cli.explain import show
from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import Object
from pumice.questions.explain.account import Account, StepsTold, account_of
from tests.kit.jobs import gang
from tests.kit.nodes import node, nodes, taint
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.priority_classes import priority_class
from tests.kit.queues import queue
from tests.pumice.questions.explain.test_advice import scene
from tests.pumice.questions.explain.test_advice_limits import scene as limited

WHO = ("podgroup", "default/g")
WHEN = "once resource is released and minAvailable is satisfied"
CLASSES = [priority_class("low", 1), priority_class("middle", 5), priority_class("high", 9)]


def steps(*objects: Object) -> dict[str, StepsTold]:
    account = account_of(scene(*CLASSES, *objects), "podgroup", "default/g")
    return {each["action"]: each for each in account.job.get("steps", [])}


def running(name: str, pods: int, least: int, **more: Any) -> list[Object]:
    return gang(name, pods=pods, min_member=least, phase="Running", nodes=["n0"] * pods, **more)


def wanting(cpu: str = "2", **more: Any) -> list[Object]:
    return gang("g", pods=1, cpu=cpu, phase="Inqueue", **more)


STOPPED: dict[str, tuple[list[Object], str, str]] = {
    "gang keeps": (
        [node("n0", cpu="2"), *running("r", 2, 2, priority_class="low"), *wanting(priority_class="high")],
        "preempt",
        (
            "none of 2 considered pods may be evicted: tier 1: gang gave 0 of 2, kept default/r-0, default/r-1 "
            "(default/r would fall below its minimum 2)"
        ),
    ),
    "priority keeps": (
        [node("n0", cpu="3"), *running("r", 3, 1, priority_class="middle"), *wanting(priority_class="low")],
        "preempt",
        "default/g-0: evictions would not make enough room on n0",
    ),
    "nobody there": (
        [*nodes(5, cpu="4"), *gang("g", pods=8, cpu="3")],
        "preempt",
        "there were no candidates: no pods of other jobs of queue default run",
    ),
    "not preemptable": (
        [
            node("n0", cpu="2"),
            *running("r", 2, 1, annotations={"volcano.sh/preemptable": "false"}),
            *wanting(priority_class="high"),
        ],
        "preempt",
        "there were no candidates: 2 pods of other jobs of queue default hold room, 2 not preemptable",
    ),
    "only where it may not run": (
        [
            node("n0", cpu="2"),
            node("n1", cpu="1", labels={"zone": "a"}),
            *running("r", 2, 1, priority_class="low"),
            *wanting(priority_class="high", node_selector={"zone": "a"}),
        ],
        "preempt",
        (
            "the candidates stand where it may not run (2: node(s) didn't match Pod's node affinity/selector): "
            "2 pods of other jobs of queue default hold room"
        ),
    ),
    "no room": (
        [*nodes(5, cpu="4"), *gang("g", pods=8, cpu="3")],
        "allocate",
        "default/g-5: no node, when 5 of at least 8 had one",
    ),
    "not starving": (
        [node("n0", cpu="2"), *running("g", 2, 2)],
        "preempt",
        "not starving: 2 ready + 0 waiting, its minimum is 2",
    ),
    "not valid": (
        [node("n0", cpu="2"), pod_group("g", min_member=1, phase="Inqueue")],
        "preempt",
        "not valid (Not enough valid tasks for gang-scheduling, valid: 0, min: 1)",
    ),
    "queue": (
        [node("n0", cpu="2"), queue("q"), *running("r", 2, 1, queue="q"), *wanting()],
        "reclaim",
        (
            "default/g-0: its queue may not take from others (queue default has nothing and deserves 1 cpu, "
            "1Gi memory, 1 pod, default/g-0 asks for 2 cpu, 1Gi memory, 1 pod)"
        ),
    ),
    "not admitted": (
        [node("n0", cpu="2"), pod_group("g", min_member=4, min_resources={"cpu": "4"})],
        "allocate",
        "the job is not admitted",
    ),
    "no pods": (
        [node("n0"), pod_group("g", min_member=0, phase="Inqueue")],
        "allocate",
        "the job has no pods",
    ),
    "missing": ([node("n0"), *gang("g", pods=1, queue="lost")], "enqueue", "its queue lost does not exist"),
}


@pytest.mark.parametrize("case", STOPPED)
def test_the_step_that_stopped_it_is_named(case: str) -> None:
    objects, action, sentence = STOPPED[case]
    assert steps(*objects)[action]["stopped"] == sentence


QUOTAS = parse_scheduler_config(
    """actions: "allocate, reclaim"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: predicates}, {name: capacity}]
""",
    source="t",
)


def reclaiming(state: str) -> Account:
    """A queue that deserves 1 cpu of 4, and a gang of two pods of 1 cpu each."""
    rich, poor = queue("q1", deserved={"cpu": "3"}), queue("q2", deserved={"cpu": "1"}, state=state)
    there = gang("r", pods=4, min_member=1, phase="Running", queue="q1", nodes=["n0"] * 4, cpu="1", memory="0")
    coming = gang("g", pods=2, queue="q2", phase="Inqueue", cpu="1", memory="0")
    return account_of(replace(scene(node("n0", cpu="4"), rich, poor, *there, *coming), config=QUOTAS), *WHO)


def test_what_was_promised_to_others_of_the_gang_counts_in_what_the_queue_has() -> None:
    told = reclaiming("Open")
    (stopped,) = [each["stopped"] for each in told.job.get("steps", []) if each["action"] == "reclaim"]
    assert stopped == (
        "default/g-1: its queue may not take from others (queue q2 has 1 cpu, 1 pod and deserves 1 cpu, "
        "default/g-1 asks for 1 cpu, 1 pod)"
    )
    assert f"can possibly be assigned to n0, {WHEN}; but what reclaim had found was undone: {stopped}" in told.message


@pytest.mark.parametrize("phase", ["Pending", "Inqueue"])
def test_a_queue_without_a_state_is_named_first(phase: str) -> None:
    """The api of a cluster without Volcano's controllers gives none."""
    wanting = [queue("q1", state=""), *gang("g", pods=1, queue="q1", phase=phase)]
    told = account_of(replace(scene(node("n0"), *wanting), config=QUOTAS), "job", "default/g")
    assert told.state == "Pending"
    assert told.message.startswith("its queue 'q1' is not open: its status has no state yet")


def test_a_closed_queue_takes_from_nobody_for_being_closed() -> None:
    (stopped,) = [each["stopped"] for each in reclaiming("Closed").job.get("steps", []) if each["action"] == "reclaim"]
    assert stopped == "default/g-0: its queue may not take from others (queue q2 is Closed)"


def test_who_lacks_pods_and_starves_in_no_plugins_eyes_is_said_to() -> None:
    config = parse_scheduler_config(
        'actions: "allocate, preempt"\ntiers: [{plugins: [{name: predicates}]}]', source="t"
    )
    starved = replace(scene(node("n0", cpu="1"), *wanting()), config=config)
    told = account_of(starved, "podgroup", "default/g").job.get("steps", [])[1]
    said = "not starving: 0 ready + 0 waiting, its minimum is 1, but no plugin finds it starving"
    assert (told["action"], told["stopped"]) == ("preempt", said)


def test_every_plugin_that_was_asked_says_whom_it_kept_and_why() -> None:
    objects, _, _ = STOPPED["priority keeps"]
    said = steps(*objects)["preempt"]["steps"]
    assert "pods considered: 3, on nodes: 1, may be evicted: 1" in said
    kept = "kept default/r-0, default/r-1, default/r-2"
    assert f"tier 1: priority gave 0 of 3, {kept} (priority 5 and more, default/g-0 has 1)" in said
    shares = "less would be left to default/r than the share that the job of default/g-0 would have"
    assert f"tier 2: drf gave 1 of 3, kept default/r-1, default/r-2 ({shares})" in said


@pytest.mark.parametrize(
    ("objects", "sentence"),
    [
        (
            [node("n0", cpu="50"), pod_group("g", min_resources={"cpu": "64"})],
            "(asks 64 cpu, 60 left of 60, which is all nodes together × overcommit-factor 1.2)",
        ),
        (
            [node("n0", cpu="50"), *running("r", 36, 1), pod_group("g", min_resources={"cpu": "54"})],
            "(asks 54 cpu, 24 left of 60, which is all nodes together × overcommit-factor 1.2)",
        ),
    ],
)
def test_admission_gives_amounts(objects: list[Object], sentence: str) -> None:
    account = account_of(scene(*objects), "podgroup", "default/g")
    assert sentence in account.message


def test_a_queue_gives_amounts() -> None:
    small = queue("small", capability={"cpu": "4"})
    held = [
        pod_group("r", queue="small", min_resources={"cpu": "1"}, phase="Running"),
        pod("r-0", group="r", node="n0"),
    ]
    big = pod_group("g", queue="small", min_resources={"cpu": "7", "memory": "1Gi"})
    account = account_of(scene(node("n0", cpu="50"), small, *held, big), "podgroup", "default/g")
    assert account.message.startswith("proportion does not admit it: asks 7 cpu, 3 left of 4;")


def test_the_table_shows_the_stop_first() -> None:
    objects, _, sentence = STOPPED["gang keeps"]
    out = StringIO()
    show(Console(file=out, width=300), account_of(scene(*CLASSES, *objects), "podgroup", "default/g"))
    lines = out.getvalue().splitlines()
    assert f"preempt: {sentence}" in lines
    assert "  tier 1: priority gave 2 of 2" in lines[lines.index(f"preempt: {sentence}") :]


def test_what_was_left_counts_jobs_that_the_same_cycle_admitted_before() -> None:
    """Eight GPUs are ten with overcommit; the first of two jobs that ask for six takes its six."""
    first, second = (pod_group(name, min_resources={"nvidia.com/gpu": "6"}) for name in ("a", "g"))
    account = account_of(scene(node("n0", gpus=8), first, second), "podgroup", "default/g")
    assert "asks 6 nvidia.com/gpu, 3.6 left of 9.6: 6 admitted but not placed, which is" in account.message


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_what_was_left_of_a_queue_counts_them_too(plugin: str) -> None:
    """16 of 20 cores went to the first job in the same cycle."""
    first, second = pod_group("a", min_resources={"cpu": "16"}), pod_group("g", min_resources={"cpu": "8"})
    with_plugin = f"{{name: {plugin}}}"
    account = account_of(limited(node("n0", cpu="20"), first, second, plugins=with_plugin), "podgroup", "default/g")
    assert "admit it: asks 8 cpu, 4 left of 20: 16 admitted but not placed; " in account.message


def test_what_was_left_of_a_queue_above_is_said_with_its_name() -> None:
    above = queue("above", capability={"cpu": "10"})
    queues = [queue("root"), above, queue("one", parent="above"), queue("two", parent="above")]
    first = pod_group("a", queue="one", min_resources={"cpu": "8"})
    second = pod_group("g", queue="two", min_resources={"cpu": "8"})
    tree = "{name: capacity, enableHierarchy: true}"
    here = limited(node("n0", cpu="20"), *queues, first, second, plugins=tree)
    account = account_of(here, "podgroup", "default/g")
    assert "admit it: asks 8 cpu, 2 left of 10: 8 admitted but not placed in queue above; " in account.message


def test_where_nobody_was_to_consider_nothing_is_said_of_what_they_would_have_given() -> None:
    others = running("r", 2, 2, queue="other")
    told = steps(node("n0", cpu="2"), queue("other"), *others, *wanting(priority_class="high"))["preempt"]
    assert told["stopped"] == "there were no candidates: no pods of other jobs of queue default run"
    assert told["steps"] == ["too few of its tasks found room, so all were undone"]


def test_room_to_come_without_evictions_is_no_want_of_victims() -> None:
    """Two of three have room immediately; the third is gated, so all is undone; no pod was to be evicted for any."""
    group, *pods = gang("g", pods=3, cpu="1", phase="Inqueue")
    gated = {**pods[-1], "spec": {**pods[-1]["spec"], "schedulingGates": [{"name": "later"}]}}
    told = steps(node("n0", cpu="4"), *running("r", 1, 1), group, *pods[:-1], gated)["preempt"]
    assert told["stopped"] == "too few of its tasks found room, so all were undone"
    assert "pods that had room to come without evictions: 2" in told["steps"]


def test_who_needs_no_eviction_is_told_apart_from_whoever_does() -> None:
    """One of the gang fits beside the others; for the second there is nobody on the one node that it may use."""
    full = [*nodes(2, cpu="4"), *gang("r", pods=2, cpu="2", min_member=1, phase="Running", nodes=["n1", "n1"])]
    full[0]["metadata"]["labels"] = {"zone": "a"}
    wants = gang("g", pods=2, cpu="3", phase="Inqueue", priority_class="high", node_selector={"zone": "a"})
    told = steps(*full, *wants)["preempt"]
    assert told["stopped"].startswith("the candidates stand where it may not run (2: node(s) didn't match")
    assert "pods that had room to come without evictions: 1" in told["steps"]


def test_why_a_pod_may_not_preempt_is_told_apart() -> None:
    """Its policy; or room that is nominated for it on a node that could still take it."""
    closed = node("n1", cpu="2", taints=[taint("team", "x")])
    full = [node("n0", cpu="2"), closed, *running("r", 2, 1, priority_class="low")]
    group, waiting = wanting(priority_class="high")
    never = {**waiting, "spec": {**waiting["spec"], "preemptionPolicy": "Never"}}
    assert steps(*full, group, never)["preempt"]["stopped"] == "default/g-0: its preemption policy is Never"
    nominated = {**waiting, "status": {**waiting["status"], "nominatedNodeName": "n0"}}
    assert steps(*full, group, nominated)["preempt"]["stopped"] == "default/g-0: room is being made for it already"


def test_what_jobs_have_beyond_their_minimums_explains_what_is_left() -> None:
    """A job of four pods that needs one: three can be had back, so 4 + 1 of 8 are left, though 7 are allocated."""
    config = limited(node("n0", cpu="20"), plugins="{name: proportion}").config
    held = [pod_group("r", min_resources={"cpu": "1"}, phase="Running")]
    held += [pod(f"r-{number}", group="r", node="n0", cpu="1") for number in range(4)]
    asking = pod_group("g", min_resources={"cpu": "8"})
    here = scene(node("n0", cpu="20"), queue("default", capability={"cpu": "8"}), *held, asking)
    told = account_of(replace(here, config=config), "podgroup", "default/g").message
    elastic = "4 allocated - 3 beyond the minimums of jobs, which can be had back (elastic)"
    assert f"admit it: asks 8 cpu, 7 left of 8: {elastic}; " in told


@pytest.mark.parametrize(("least", "told"), [(3, True), (4, False)])
def test_minimums_of_tasks_that_are_passed_over_are_told(least: int, told: bool) -> None:
    group, *pods = gang("tm", pods=4, cpu="1", phase="Inqueue", min_member=least)
    group["spec"]["minTaskMember"] = {"a": 2, "b": 2}
    for number, each in enumerate(pods):
        each["metadata"]["annotations"]["volcano.sh/task-spec"] = "ab"[number // 2]
    message = account_of(scene(node("n0", cpu="3"), group, *pods), "podgroup", "default/tm").message
    assert ("the minimums of its tasks (a 2, b 2) are passed over, for minAvailable 3" in message) is told
