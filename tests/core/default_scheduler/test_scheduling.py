"""Pods of default-scheduler, one at a time: where they go, in what order, and what is said of those that wait."""

from __future__ import annotations

import pytest

from pumice.core.objects.metadata import Object
from pumice.core.session.trail.trail import Trail
from pumice.core.state.view import View
from tests.core.default_scheduler.clusters import bound, decided, mine, why
from tests.kit.nodes import node
from tests.kit.pods import node_affinity, pod, toleration

NOBODY = "No preemption victims found for incoming pod"
NO_HELP = "Preemption is not helpful for scheduling"
TAINT: Object = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def test_pods_spread_over_the_emptiest_nodes() -> None:
    nodes = [node(f"n{number}") for number in range(3)]
    assert bound(decided(nodes, [mine(f"p{number}") for number in range(3)])) == {"p0": "n0", "p1": "n1", "p2": "n2"}


def test_only_its_own_pods_without_a_group_are_taken() -> None:
    gated = mine("gated")
    gated["spec"]["schedulingGates"] = [{"name": "later"}]
    leaving = mine("leaving")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    others = [pod("volcanos"), pod("nobodys", scheduler="custom"), mine("grouped", group="g"), gated, leaving]
    result = decided(node("n0"), others, mine("own"))
    assert bound(result) == {"own": "n0"}
    assert (result.pod_conditions, result.pod_groups, result.queues) == ((), (), ())


def test_priority_goes_before_age_and_age_before_the_name() -> None:
    old, young = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
    waiting = [
        mine("a", created=young, cpu="5"),
        mine("z", created=old, cpu="5"),
        mine("vip", created=young, cpu="5", priority=7),
    ]
    two = [node("n0"), node("n1")]
    assert bound(decided(two, waiting)) == {"vip": "n0", "z": "n1"}


def test_volcanos_priority_annotation_says_nothing() -> None:
    told = mine("told", cpu="5", annotations={"volcano.sh/task-priority": "9"}, created="2026-01-01T00:00:09Z")
    assert bound(decided(node("n0"), told, mine("old", cpu="5", created="2026-01-01T00:00:00Z"))) == {"old": "n0"}


def test_pods_of_others_and_binds_on_their_way_take_room() -> None:
    view = View()
    for obj in (node("n0"), pod("v", node="n0", cpu="3"), pod("flying", cpu="3")):
        view.apply("ADDED", obj)
    view.assume("default", "flying", "n0")
    assert bound(decided(mine("small", cpu="2"), view=view)) == {"small": "n0"}
    assert bound(decided(mine("large", cpu="3", created="2025-01-01T00:00:00Z"), view=view)) == {"small": "n0"}


def test_what_is_leaving_still_takes_room() -> None:
    leaving = pod("v", node="n0", cpu="5")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    assert not bound(decided(node("n0"), leaving, mine("p", cpu="5")))


@pytest.mark.parametrize(
    ("nodes", "waits", "said", "preemption"),
    [
        ([], mine("p"), "no nodes available to schedule pods", {}),
        ([node("a", cpu="1"), node("b", cpu="1")], mine("p", cpu="2"), "2 Insufficient cpu", {NOBODY: 2}),
        (
            [node("a", cpu="1", memory="1Gi"), node("b", cpu="1")],
            mine("p", cpu="2", memory="2Gi"),
            "1 Insufficient memory, 2 Insufficient cpu",
            {NOBODY: 2},
        ),
        ([node("a", pods="0")], mine("p"), "1 Too many pods", {NOBODY: 1}),
        (
            [node("a", unschedulable=True, cpu="1"), node("b", cpu="1")],
            mine("p", cpu="2"),
            "1 Insufficient cpu, 1 node(s) were unschedulable",
            {NO_HELP: 1, NOBODY: 1},
        ),
        (
            [node("a", taints=[TAINT])],
            mine("p", node_selector={"zone": "west"}),
            "1 node(s) had untolerated taint(s)",
            {NO_HELP: 1},
        ),
        (
            [node("a", taints=[TAINT])],
            mine("p", node_selector={"zone": "west"}, tolerations=[toleration("gpu")]),
            "1 node(s) didn't match Pod's node affinity/selector",
            {NO_HELP: 1},
        ),
    ],
    ids=["no-node", "cpu", "both", "pods", "cordoned", "taint-first", "affinity"],
)
def test_why_a_pod_waits(nodes: list[Object], waits: Object, said: str, preemption: dict[str, int]) -> None:
    result = decided(nodes, waits)
    head = f"0/{len(nodes)} nodes are available: "
    whole = said
    if nodes:
        counts = ", ".join(sorted(f"{count} {text}" for text, count in preemption.items()))
        whole = f"{head}{said}. preemption: {head}{counts}."
    assert why(result) == {"p": whole}
    assert result.pod_conditions[0].reason == "Unschedulable"
    assert result.report.pending["default/p"].message == whole


def test_a_claim_that_is_not_there_is_refused_everywhere() -> None:
    waits = mine("p")
    waits["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    text = why(decided(node("a"), waits))["p"]
    assert text.startswith("0/1 nodes are available: ")
    assert '"data" not found' in text
    assert text.endswith(f"preemption: 0/1 nodes are available: 1 {NO_HELP}.")


def test_what_was_said_before_is_not_written_again() -> None:
    view = View()
    said = why(decided(node("a", cpu="1"), mine("p", cpu="2"), view=view))["p"]
    told = mine("p", cpu="2")
    told["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": said}
    ]
    view.apply("MODIFIED", told)
    assert not decided(view=view).pod_conditions


def test_preferences_score_with_kubernetes_weights() -> None:
    """Node affinity (2) goes before the emptier node (1), and so it is with the whole profile."""
    waits = mine("p", affinity=node_affinity("disk", "ssd", weight=50))
    assert bound(decided(node("a"), node("b", labels={"disk": "ssd"}), pod("v", node="b", cpu="1"), waits)) == {
        "p": "b"
    }


def test_host_ports_and_one_pod_after_the_other() -> None:
    two = [mine("p0", host_ports=[80]), mine("p1", host_ports=[80])]
    result = decided(node("a"), two)
    assert bound(result) == {"p0": "a"}
    assert "1 node(s) didn't have free ports for the requested pod ports" in why(result)["p1"]


def test_a_trail_is_told_of_the_search_and_changes_nothing() -> None:
    objects, trail = [node("a"), mine("p")], Trail()
    result = decided(objects, trail=trail)
    assert [look.chosen for look in trail.looks["default/p"]] == ["a"]
    assert result.digest == decided(objects).digest
