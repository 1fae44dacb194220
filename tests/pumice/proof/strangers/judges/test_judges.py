"""Judges of histories: what breaks an invariant, and what looks like it and does not."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.proof.strangers.history import Acknowledged
from pumice.proof.strangers.judges.panel import JUDGES, SUBJECTS, promise_of
from tests.kit import node, pod, pod_group, queue
from tests.pumice.proof.strangers.judges.histories import Told

Object = dict[str, Any]


def cluster(cpu: str = "4") -> list[Object]:
    return [node("n0", cpu=cpu), queue("default"), queue("capped", capability={"cpu": "2"})]


def gang(size: int, minimum: int, *, of: str = "default", cpu: str = "1") -> tuple[Object, list[Object]]:
    members = [pod(f"g-{number}", group="g", cpu=cpu, uid=f"u{number}") for number in range(size)]
    return pod_group("g", min_member=minimum, queue=of), members


# --- placements


def test_a_pod_that_moves_breaks_one_node() -> None:
    one = pod("p")
    told = Told(*cluster(), node("n1"), one).bind(one, "n0").bind(one, "n1")
    assert told.broken("placements") == ["one-node"]


def test_a_pod_that_is_bound_again_under_another_uid_does_not_move() -> None:
    one, other = pod("p", uid="a"), pod("p", uid="b")
    told = Told(*cluster(), node("n1"), one).bind(one, "n0").delete(one).add(other).bind(other, "n1")
    assert told.broken("placements") == []


def test_a_pod_of_another_scheduler_is_not_to_be_bound() -> None:
    one = pod("p", scheduler="theirs")
    assert Told(*cluster(), one).bind(one, "n0").broken("placements") == ["own-pods"]
    assert Told(*cluster(), one).bind(one, "n0").broken("placements", scheduler="theirs") == []


@pytest.mark.parametrize(("late", "broken"), [(1, []), (4, ["within-allocatable"])])
def test_a_node_that_shrank_counts_as_it_could_be_known(late: int, broken: list[str]) -> None:
    one, small = pod("p", cpu="3"), node("n0", cpu="2")
    told = Told(*cluster(), one).add(small, "MODIFIED").wait(late).bind(one, "n0")
    assert told.broken("placements") == broken


@pytest.mark.parametrize(("late", "broken"), [(1, []), (4, ["open-nodes"])])
def test_a_node_that_is_cordoned_or_gone_takes_no_pod(late: int, broken: list[str]) -> None:
    one, there = pod("p"), node("n0")
    told = Told(*cluster(), one).change(there, spec={"unschedulable": True}).wait(late).bind(one, "n0")
    assert told.broken("placements") == broken
    one = pod("p")
    assert Told(*cluster(), one).delete(there).wait(late).bind(one, "n0").broken("placements") == broken


def test_a_queue_has_at_most_its_capability() -> None:
    group, members = gang(3, 1, of="capped")
    told = Told(*cluster(), group, *members)
    for each in members:
        told.bind(each, "n0")
    assert told.broken("placements") == ["within-capability"]


# --- gangs


def test_a_gang_below_its_minimum_when_quiet_was_started_in_part() -> None:
    group, members = gang(3, 3)
    told = Told(*cluster(), group, *members).bind(members[0], "n0").bind(members[1], "n0")
    (found,) = told.judged("gangs")
    assert (found.invariant, found.words) == (
        "whole-gangs",
        "gang default/g needs 3, and was started with 2 (g-0, g-1)",
    )
    assert told.broken("gangs", quiet=()) == []
    assert told.bind(members[2], "n0").broken("gangs") == []


def test_a_gang_that_lost_members_afterwards_is_whole() -> None:
    group, members = gang(2, 2)
    told = Told(*cluster(), group, *members).bind(members[0], "n0").bind(members[1], "n0").delete(members[1])
    assert told.broken("gangs") == []


def test_a_gang_whose_members_the_subject_evicted_is_not_whole() -> None:
    group, members = gang(2, 2)
    told = Told(*cluster(), group, *members).bind(members[0], "n0").bind(members[1], "n0")
    assert told.delete(members[1], "vc-scheduler").broken("gangs") == ["whole-gangs"]


def test_a_gang_that_lost_members_while_it_started_is_not_judged() -> None:
    group, members = gang(2, 2)
    told = Told(*cluster(), group, *members).bind(members[0], "n0").delete(members[1])
    assert told.broken("gangs") == []


@pytest.mark.parametrize(("late", "broken"), [(0, []), (4, ["whole-gangs"])])
def test_a_minimum_that_grew_counts_as_it_could_be_known(late: int, broken: list[str]) -> None:
    group, members = gang(3, 2)
    told = Told(*cluster(), group, *members).change(group, spec={"minMember": 3}).wait(late)
    told.bind(members[0], "n0").bind(members[1], "n0")
    assert told.broken("gangs", slack_s=3.0) == broken


@pytest.mark.parametrize(("late", "room", "broken"), [(0, 1, []), (2, 1, ["grows-whole"]), (2, 2, []), (2, 0, [])])
def test_a_gang_that_grows_gets_all_that_it_needs_or_nothing(late: int, room: int, broken: list[str]) -> None:
    """Whole with two, it needs four from some moment on; `room`: so many pods are bound afterwards."""
    group, members = gang(4, 2)
    told = Told(*cluster("8"), group, *members).bind(members[0], "n0").bind(members[1], "n0")
    told.change(group, spec={"minMember": 4}).wait(late)
    for each in members[2 : 2 + room]:
        told.bind(each, "n0")
    assert told.broken("gangs", lag_s=100.0) == broken


def test_a_grown_gang_that_lost_a_member_is_not_judged() -> None:
    group, members = gang(4, 2)
    told = Told(*cluster("8"), group, *members).bind(members[0], "n0").bind(members[1], "n0")
    told.change(group, spec={"minMember": 4}).wait(2).bind(members[2], "n0").delete(members[0])
    assert told.broken("gangs", lag_s=100.0) == []


# --- evictions, nominations


def test_an_eviction_that_a_budget_forbids_breaks_it() -> None:
    member = pod("g-0", labels={"a": "b"}, node="n0")
    member["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
    }
    evicted = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    told = Told(*cluster(), member, budget)
    assert told.broken("evictions") == []
    told.change(member, status={"conditions": [*member["status"]["conditions"], evicted]})
    assert told.broken("evictions") == ["within-budget"]


@pytest.mark.parametrize(("by", "broken"), [("vc-scheduler", ["own-pods"]), ("node-agents", [])])
def test_a_pod_of_another_scheduler_is_not_to_be_evicted(by: str, broken: list[str]) -> None:
    mine, theirs = pod("m", node="n0"), pod("t", node="n0", scheduler="theirs")
    told = Told(*cluster(), mine, theirs).delete(mine, by)
    assert told.broken("evictions") == []
    assert told.delete(theirs, by).broken("evictions") == broken


def test_a_nomination_to_a_node_that_does_not_exist_is_to_be_given_up() -> None:
    one = pod("p")
    told = Told(*cluster(), one).change(one, status={"nominatedNodeName": "n0"})
    assert told.broken("nominations") == []
    assert told.delete(node("n0")).broken("nominations") == ["nominations"]


def test_a_nomination_to_a_full_node_that_no_pod_leaves_is_to_be_given_up() -> None:
    victim, one = pod("v", node="n0", cpu="4"), pod("p", cpu="4")
    told = Told(*cluster(), victim, one).change(one, status={"nominatedNodeName": "n0"})
    (found,) = told.judged("nominations")
    assert found.words == "pod default/p is nominated to n0, which has no room for it, and no pod leaves n0"
    assert told.broken("nominations", quiet=()) == []
    told.change(victim, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert told.broken("nominations") == []


# --- accounts


def vcjob(uid: str, running: int) -> Object:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "uid": uid},
        "status": {"running": running},
    }


@pytest.mark.parametrize(("said", "broken"), [(1, []), (2, ["job-counts"])])
def test_a_job_counts_its_pods_when_all_is_quiet(said: int, broken: list[str]) -> None:
    owner = {"kind": "Job", "uid": "j1", "controller": True}
    member, group = pod("j-0", node="n0"), pod_group("j", min_member=1)
    for each in (member, group):
        each["metadata"]["ownerReferences"] = [owner]
    group["status"] = {"phase": "Running"}
    told = Told(*cluster(), vcjob("j1", said), group, member)
    assert told.broken("jobs") == broken
    assert told.broken("jobs", quiet=()) == []


def test_what_was_acknowledged_is_in_the_history() -> None:
    told = Told(*cluster(), pod("p"))
    told.acknowledged.append(Acknowledged("Pod", "default", "p", told.revision))
    assert told.broken("losses") == []
    told.acknowledged.append(Acknowledged("Pod", "default", "q", told.revision))
    told.acknowledged.append(Acknowledged("Pod", "default", "r", told.revision + 1))
    assert told.broken("losses") == ["nothing-lost", "nothing-lost"]
    del told.changes[1]
    assert "nothing-lost" in told.broken("losses", acknowledged=())


# --- progress


def test_a_gang_that_fits_starts() -> None:
    group, members = gang(2, 2)
    (found,) = Told(*cluster(), group, *members).judged("progress")
    assert found.words == "gang default/g waits for ever, and fits: g-0, g-1"
    assert Told(*cluster("1"), group, *members).broken("progress") == []


@pytest.mark.parametrize(
    "keeps",
    [
        "a capability",
        "the share of another queue",
        "its size",
        "the order of unequal members",
        "a cordon",
        "another scheduler",
        "a selector",
    ],
)
def test_a_gang_that_is_kept_from_starting_may_wait(keeps: str) -> None:
    group, members = gang(2, 3 if keeps == "its size" else 2, of="capped" if keeps == "a capability" else "default")
    for each in members:
        if keeps == "another scheduler":
            each["spec"]["schedulerName"] = "theirs"
        if keeps == "a selector":
            each["spec"]["nodeSelector"] = {"disk": "fast"}
    if keeps == "the order of unequal members":
        members[1]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
    told = Told(*cluster(), group, *members)
    if keeps == "the share of another queue":
        told.add(pod_group("other", queue="capped")).add(pod("other-0", group="other", cpu="3"))
    if keeps == "a cordon":
        told.change(node("n0"), spec={"unschedulable": True})
    assert told.broken("progress") == []


def test_a_member_that_a_running_gang_has_room_for_is_bound() -> None:
    group, members = gang(2, 1)
    told = Told(*cluster(), group, *members).bind(members[0], "n0")
    assert told.broken("progress") == ["starts"]


# --- the table


def test_every_invariant_has_a_document_and_every_profile_its_judges() -> None:
    invariants = [name for judge in JUDGES.values() for name in judge.promises]
    assert len(invariants) == len(set(invariants))
    assert all(promise_of(name).startswith("https://") for name in invariants)
    assert all(name in JUDGES for profile in SUBJECTS.values() for name in profile.judges)
