"""What is left between two cycles, rule by rule of the conformance README."""

from __future__ import annotations

import copy
from typing import Any

from pumice.core.messages.decisions import (
    Bind,
    BindContext,
    CycleResult,
    Evict,
    PodCondition,
    PodGroupCondition,
    PodGroupStatus,
)
from pumice.questions.oneshot.between import next_objects
from pumice.questions.oneshot.outcome import Standing, standings_of

NOW = 1_577_836_800.0


def pod(name: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "a", **more},
        "spec": {},
        "status": {"phase": "Pending"},
    }


def after(objects: list[dict[str, Any]], **result: Any) -> list[dict[str, Any]]:
    """The next cycle's objects; the given ones must not have changed."""
    before = copy.deepcopy(objects)
    found = next_objects(objects, CycleResult(1, "", **result), NOW)
    assert objects == before
    return found


def test_nothing_written_nothing_changed() -> None:
    objects = [pod("p"), {"kind": "Node", "metadata": {"name": "n"}}]
    assert after(objects) == objects


def test_a_bound_pod_runs_without_a_start_time() -> None:
    (found,) = after([pod("p")], binds=(Bind("a", "p", "u", "n0", "a/j"),))
    assert found["spec"]["nodeName"] == "n0"
    assert found["status"] == {"phase": "Running"}


def test_the_evicted_and_the_dying_are_gone_and_the_rest_keep_their_order() -> None:
    objects = [pod("x"), pod("victim"), pod("dying", deletionTimestamp="2020-01-01T00:00:00Z"), pod("y")]
    found = after(objects, evicts=(Evict("a", "victim", "u", "n0", "a/j", "why"),))
    assert [obj["metadata"]["name"] for obj in found] == ["x", "y"]


def test_a_pod_bound_and_evicted_in_one_cycle_is_gone() -> None:
    bind, evict = Bind("a", "p", "u", "n0", "a/j"), Evict("a", "p", "u", "n0", "a/j", "why")
    assert after([pod("p")], binds=(bind,), evicts=(evict,)) == []


def test_the_condition_replaces_the_old_one_and_others_stay() -> None:
    waiting = pod("p")
    waiting["status"]["conditions"] = [
        {"type": "Ready", "status": "False"},
        {"type": "PodScheduled", "status": "False"},
    ]
    (found,) = after([waiting], pod_conditions=(PodCondition("a", "p", "u", "Unschedulable", "no room", "n1"),))
    ready, scheduled = found["status"]["conditions"]
    assert ready["type"] == "Ready"
    assert (scheduled["status"], scheduled["reason"], scheduled["message"]) == ("False", "Unschedulable", "no room")
    assert found["status"]["nominatedNodeName"] == "n1"


def test_an_update_without_a_nomination_leaves_the_old_one() -> None:
    waiting = pod("p")
    waiting["status"]["nominatedNodeName"] = "n0"
    (found,) = after([waiting], pod_conditions=(PodCondition("a", "p", "u", "Unschedulable", "no room"),))
    assert found["status"]["nominatedNodeName"] == "n0"
    assert standings_of([found, pod("q")]) == {"a/p": Standing("n0", "Unschedulable", "no room")}


def test_a_nomination_alone_writes_no_condition() -> None:
    (found,) = after([pod("p")], pod_conditions=(PodCondition("a", "p", "u", "", "", "n1"),))
    assert found["status"] == {"phase": "Pending", "nominatedNodeName": "n1"}


def test_a_pod_group_has_the_status_and_annotations_that_were_written() -> None:
    group = {"kind": "PodGroup", "metadata": {"name": "j", "namespace": "a"}, "status": {"phase": "Pending"}}
    condition = PodGroupCondition("Unschedulable", "True", "NotEnoughResources", "why")
    written = PodGroupStatus("a", "j", "Inqueue", (condition,), running=1, annotations={"k": "v"})
    (found,) = after([group], pod_groups=(written,))
    assert found["metadata"]["annotations"] == {"k": "v"}
    assert (found["status"]["phase"], found["status"]["running"]) == ("Inqueue", 1)
    assert found["status"]["conditions"][0]["message"] == "why"


def test_a_bound_pod_has_the_annotations_of_its_bind() -> None:
    context = BindContext(annotations=(("b", "new"), ("c", "new")))
    (found,) = after(
        [pod("p", annotations={"a": "old", "b": "old"})], binds=(Bind("a", "p", "u", "n0", "a/j", context),)
    )
    assert found["metadata"]["annotations"] == {"a": "old", "b": "new", "c": "new"}
