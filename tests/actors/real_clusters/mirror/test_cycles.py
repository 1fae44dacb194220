"""Changes cut into cycles of the scheduler that made them."""

from typing import Any

import pytest

from pumice.actors.real_clusters.mirror.changes import RemoteChange, change_of
from pumice.actors.real_clusters.mirror.cycles import INSIDE, OUTSIDE, CycleCutter, Nominated
from pumice.core.messages.decisions import Bind, Evict
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod


def named(name: str, node: str | None = None, **more: Any) -> RemoteChange:
    return change_of("Pod", pod(name, node=node, uid=f"u-{name}", group="g", **more))


def evicted(name: str, *, reason: str = "preempt", gone: bool = False) -> RemoteChange:
    obj = pod(name, node="n1", uid=f"u-{name}")
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    obj["status"]["conditions"] = [
        {"type": "Ready", "status": "False", "reason": "Evict", "message": f"Pod is evicted, because of {reason}"}
    ]
    return change_of("Pod", obj, gone=gone)


def cut(*changes: RemoteChange, known: tuple[RemoteChange, ...] = ()) -> list[tuple[list[str], list[str], list[str]]]:
    """Names of what came before, of what was decided, and of what came after, cycle by cycle."""
    cutter = CycleCutter()
    cutter.cut(list(known))
    return [
        ([each.change.name for each in cycle.before], [each.name for each in cycle.decided],
         [each.change.name for each in cycle.after])
        for cycle in cutter.cut(list(changes))
    ]  # fmt: skip


def test_binds_in_a_row_are_one_cycle_that_saw_what_came_before() -> None:
    assert cut(named("a"), named("b"), named("a", "n1"), named("x"), named("b", "n2")) == [
        (["a", "b"], ["a", "b"], ["a", "x", "b"])
    ]


def test_a_pod_that_came_after_the_first_bind_was_bound_by_a_later_cycle() -> None:
    assert cut(named("a"), named("a", "n1"), named("b"), named("b", "n1")) == [
        (["a"], ["a"], ["a", "b"]),
        ([], ["b"], ["b"]),
    ]


def test_without_a_decision_there_is_one_stretch_of_changes_and_without_changes_none() -> None:
    assert cut(named("a"), named("b")) == [(["a", "b"], [], [])]
    assert cut() == []


def test_a_pod_that_came_with_its_node_was_bound_by_nobody_here() -> None:
    assert cut(named("a", "n1"), named("a", "n1", phase="Running")) == [(["a", "a"], [], [])]


def test_pods_that_came_and_were_bound_while_nobody_looked_were_bound_by_one_cycle() -> None:
    came = named("b", "n1", phase="Running"), named("c", "n2")
    cutter = CycleCutter()
    cutter.cut([named("a", "n1")])
    (cycle,) = cutter.cut([*came])
    assert [each.name for each in cycle.decided] == ["b", "c"]
    before = [each.change.obj for each in cycle.before]
    assert [(obj["spec"].get("nodeName"), obj["status"]) for obj in before if obj] == [(None, {"phase": "Pending"})] * 2


def test_another_pod_of_that_name_came_and_was_bound() -> None:
    other = change_of("Pod", pod("a", node="n1", uid="another"))
    assert cut(other, known=(named("a"),)) == [(["a"], ["a"], ["a"])]


def test_pods_of_other_schedulers_are_not_volcanos_decisions() -> None:
    mine = {"scheduler": "default-scheduler"}
    assert cut(named("a", "n1", **mine), known=(named("a", **mine),)) == [(["a"], [], [])]


@pytest.mark.parametrize("gone", [False, True])
def test_an_eviction_has_volcanos_reason(gone: bool) -> None:
    cutter = CycleCutter()
    cutter.cut([named("a", "n1")])
    (cycle,) = cutter.cut([evicted("a", reason="reclaim", gone=gone), evicted("a", reason="reclaim", gone=True)])
    assert cycle.decided == [Evict("default", "a", "u-a", "n1", "", "reclaim", action="reclaim")]
    assert [each.decision for each in cycle.after] == [0, None]


def test_who_was_deleted_by_somebody_else_was_not_evicted() -> None:
    obj = pod("a", node="n1", uid="u-a")
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert cut(change_of("Pod", obj), known=(named("a", "n1"),)) == [(["a"], [], [])]


def test_a_bind_names_its_job() -> None:
    cutter = CycleCutter()
    (cycle,) = cutter.cut([named("a"), named("a", "n1")])
    assert cycle.decided == [Bind("default", "a", "u-a", "n1", "default/g")]


def users(cutter: CycleCutter, *changes: RemoteChange) -> list[str]:
    return [each.user for cycle in cutter.cut(list(changes)) for each in (*cycle.before, *cycle.after)]


def group(generation: int, **more: Any) -> RemoteChange:
    obj = pod_group("g")
    obj["metadata"] |= {"generation": generation, "uid": "u", **more}
    return change_of("PodGroup", obj)


def test_what_follows_is_told_from_what_comes_from_outside() -> None:
    cutter = CycleCutter()
    assert users(cutter, named("a"), named("a", "n1"), named("a", "n1", phase="Running")) == [OUTSIDE, INSIDE, INSIDE]
    assert users(cutter, evicted("a"), evicted("a", gone=True)) == [INSIDE, INSIDE]
    assert users(cutter, group(1), group(1), group(2)) == [OUTSIDE, INSIDE, OUTSIDE]
    assert users(cutter, RemoteChange("PodGroup", "default", "g", None, gone=True)) == [OUTSIDE]


def test_what_volcanos_controllers_make_is_made_again_by_ours() -> None:
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    obj = pod("a", uid="u-a")
    obj["metadata"]["ownerReferences"] = [job]
    owned = change_of("Pod", obj)
    of_pod = {**job, "apiVersion": "v1", "kind": "Pod"}
    cutter = CycleCutter()
    assert users(cutter, owned, group(1, ownerReferences=[of_pod])) == [INSIDE, INSIDE]
    assert users(cutter, RemoteChange("Pod", "default", "a", None, gone=True)) == [INSIDE]


def nominated(name: str, node: str, **more: Any) -> RemoteChange:
    obj = pod(name, uid=f"u-{name}", group="g", **more)
    obj["status"] = {"phase": "Pending", "nominatedNodeName": node, "conditions": [{"type": "PodScheduled"}]}
    return change_of("Pod", obj)


def about_to_go(name: str) -> RemoteChange:
    obj = evicted(name).obj
    assert obj is not None
    return change_of("Pod", {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": None}})


def test_what_a_session_writes_before_its_evictions_are_seen_is_told_from_its_input() -> None:
    cutter = CycleCutter()
    cutter.cut([named("low", "n1"), named("high"), named("next"), group(1)])
    (cycle,) = cutter.cut(
        [named("next", labels={"a": "b"}), nominated("high", "n1"), about_to_go("low"), evicted("low")]
    )
    assert [(each.change.name, each.written) for each in (*cycle.before, *cycle.after)] == [
        ("next", False), ("high", True), ("low", True), ("low", False),
    ]  # fmt: skip
    assert (cycle.part(), cycle.following(0), cycle.following(1)) == (1, 1, 3)
    assert cycle.nominated() == {"n1": [Nominated("n1", "default/high", "u-high", "default/g")]}
    cycle.defer()
    assert [each.change.name for each in cycle.before] == ["next"]
    assert [each.change.name for each in cycle.after] == ["high", "low", "low"]


def test_a_gate_that_falls_is_no_session_s_writing() -> None:
    cutter = CycleCutter()
    gated = pod("a", uid="u-a", group="g")
    gated["spec"]["schedulingGates"] = [{"name": "x"}]
    cutter.cut([change_of("Pod", gated)])
    (cycle,) = cutter.cut([named("a"), named("a", "n1")])
    cycle.defer()
    assert [each.change.name for each in cycle.before] == ["a"]


def test_what_may_have_come_after_the_scheduler_had_looked_is_room_that_was_made() -> None:
    cutter = CycleCutter()
    cutter.cut([*(named(name, "n1") for name in "xyz"), named("a"), group(1)])
    leaves = pod("y", node="n1", uid="u-y")
    leaves["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    gone = RemoteChange("Pod", "default", "x", None, gone=True)
    room = [gone, change_of("Pod", leaves), named("z", "n1", phase="Succeeded"), group(1)]
    (cycle,) = cutter.cut([gone, named("b"), *room, named("a", "n1")])
    assert [each.change.name for each in cycle.before[cycle.part() :]] == ["x", "y", "z", "g"]
    (cycle,) = cutter.cut([*[gone] * 100, named("b", "n1")])
    assert cycle.part() == 40, "not all of it in one batch"
