"""What the default configuration does with small clusters."""

from typing import Any

import pytest

from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.priority_classes import priority_class
from tests.kit.queues import queue
from tests.scenarios.scenario import Scenario

Q = queue("default")
HELD_BACK = "pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Unschedulable"
"""The queue has no room for it, so no node is asked: a cycle has Volcano's words of the job and no others."""


def terminating(obj: dict[str, Any]) -> dict[str, Any]:
    """The object, being deleted."""
    return {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


SCENARIOS = [
    Scenario(
        "a gang that fits is bound whole",
        [Q, node("n0", cpu="4"), *gang("j", pods=4, phase="Inqueue")],
        {f"default/j-{i}": "n0" for i in range(4)},
        phases={"default/j": "Inqueue"},
    ),
    Scenario(
        "a gang that does not fit whole is not bound at all, and each pod says why",
        [Q, node("n0", cpu="3"), *gang("j", pods=4, phase="Inqueue")],
        {},
        {
            "default/j-0": "can possibly be assigned to n0, once minAvailable is satisfied",
            "default/j-3": "pod group is not ready, 4 Pending, 4 minAvailable; Pending: 1 Unschedulable, 3 Schedulable",
        },
    ),
    Scenario(
        "above the minimum as many as fit are bound",
        [Q, node("n0", cpu="3"), *gang("j", pods=4, min_member=2, phase="Inqueue")],
        {f"default/j-{i}": "n0" for i in range(3)},
        {"default/j-3": "pod group is ready, 1 Pending, 2 minAvailable, 3 Binding; Pending: 1 Unschedulable"},
    ),
    Scenario(
        "too few pods exist: the gang is not valid",
        [Q, node("n0"), pod_group("j", min_member=3, phase="Inqueue"), pod("a", group="j"), pod("b", group="j")],
        {},
        {"default/a": "pod group is not ready, 2 Pending, 3 minAvailable"},
    ),
    Scenario(
        "the least used node is taken, the lowest name among equals",
        [Q, node("n1"), node("n0"), pod("old", node="n0", group="x"), *gang("j", pods=2, phase="Inqueue")],
        {"default/j-0": "n1", "default/j-1": "n0"},
    ),
    Scenario(
        "the higher priority goes first",
        [
            Q,
            node("n0", cpu="1"),
            priority_class("high", 10),
            *gang("a", pods=1, phase="Inqueue"),
            *gang("b", pods=1, phase="Inqueue", priority_class="high"),
        ],
        {"default/b-0": "n0"},
        {"default/a-0": HELD_BACK},
    ),
    Scenario(
        "a selector, a taint and a cordon each refuse their node with Kubernetes' words",
        [
            Q,
            node("n0", labels={"zone": "a"}),
            node("n1", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]),
            node("n2", unschedulable=True),
            *gang("j", pods=1, phase="Inqueue", node_selector={"zone": "b"}),
        ],
        {},
        {
            "default/j-0": "1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector.",
        },
    ),
    Scenario(
        "pods without requests are backfilled even where nothing is left",
        [
            Q,
            node("n0", cpu="1"),
            *gang("a", pods=1, phase="Inqueue"),
            *gang("b", pods=1, phase="Inqueue", cpu=None, memory=None),
        ],
        {"default/a-0": "n0", "default/b-0": "n0"},
    ),
    Scenario(
        "a pod that is larger than any node waits with the reason",
        [Q, node("n0"), node("n1"), *gang("j", pods=1, phase="Inqueue", cpu="64")],
        {},
        {"default/j-0": HELD_BACK},
    ),
    Scenario(
        "a pod that is larger than any node, though not than the cluster, waits with the nodes' reason",
        [Q, *(node(f"n{i}") for i in range(9)), *gang("j", pods=1, phase="Inqueue", cpu="64")],
        {},
        {"default/j-0": "0/9 nodes are unavailable: 9 Insufficient cpu."},
    ),
    Scenario(
        "a job that asks for more than the cluster and its overcommitment is not admitted",
        [
            Q,
            node("n0", cpu="4"),
            pod_group("j", min_member=1, min_resources={"cpu": "5"}),
            pod("p", group="j", cpu="4"),
        ],
        {},
        {"default/p": HELD_BACK},
        {"default/j": "Pending"},
    ),
    Scenario(
        "in a closed queue nothing is allocated",
        [queue("default", state="Closed"), node("n0"), *gang("j", pods=1, phase="Inqueue")],
        {},
        {"default/j-0": "1 Pending"},
    ),
    Scenario(
        "without the action enqueue a pending job is admitted by allocate",
        [Q, node("n0"), *gang("j", pods=1)],
        {"default/j-0": "n0"},
        phases={"default/j": "Inqueue"},
        config="actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]",
    ),
    Scenario(
        "room that is being freed is promised, not given",
        [
            Q,
            node("n0", cpu="1"),
            terminating(pod("old", node="n0", group="x")),
            *gang("j", pods=1, phase="Inqueue"),
        ],
        {},
    ),
]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_scenario(scenario: Scenario) -> None:
    scenario.check()


def test_the_same_cycle_gives_the_same_digest_and_another_one_another() -> None:
    first, second = SCENARIOS[0].run(), SCENARIOS[0].run()
    assert first == second
    assert SCENARIOS[2].run().digest != first.digest


def test_a_node_refused_for_one_role_is_asked_again_for_another_of_the_same_shape() -> None:
    """The predicate-error cache is by role: a skew that refused a zone for one may be gone for the next."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    pods = [pod(f"p{i}", group="j", task=f"role{i}", labels={"app": "x"}) for i in range(6)]
    for each in pods:
        each["spec"]["topologySpreadConstraints"] = [constraint]
    zones = [node(f"n{i}", labels={"zone": f"z{i}"}) for i in range(3)]
    result = Scenario("roles", [Q, *zones, pod_group("j", min_member=6, phase="Inqueue"), *pods], {}).run()
    assert sorted(bind.node for bind in result.binds) == ["n0", "n0", "n1", "n1", "n2", "n2"]
