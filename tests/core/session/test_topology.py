"""Where a session finds that jobs and their groups are: what is carried over, and what their tasks' nodes say."""

from __future__ import annotations

import pytest

from pumice.core.objects.metadata import Object
from pumice.core.session.carry import Carry
from tests.core.plugins.world import configuration, job_of, open_world
from tests.kit import gang, node, pod, queue
from tests.kit.hyper_nodes import hyper_node

JOB = "default/j"
CONFIG = configuration(["gang", "network-topology-aware"])


def world() -> list[Object]:
    """Two racks under one spine, and a job of one group in the first rack."""
    group, *pods = gang("j", queue="q", pods=2, nodes=["n0", "n0"], phase="Running")
    group["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 2}
    racks = [hyper_node("r0", 1, nodes=["n0"]), hyper_node("r1", 1, nodes=["n1"])]
    return [node("n0"), node("n1"), queue("q"), *racks, hyper_node("s0", 2, children=["r0", "r1"]), group, *pods]


@pytest.mark.parametrize(
    ("carried", "job", "group"),
    [
        ({}, "r0", "r0"),
        ({"": "s0", JOB: "r0"}, "s0", "r0"),  # all is known: nothing is found out, and nothing narrowed
        ({"": "s0"}, "r0", "r0"),  # a group that is found anew tells where the job is
        ({"": "s0", JOB: "gone"}, "r0", "r0"),
        ({"": "gone", JOB: "s0"}, "s0", "s0"),
    ],
)
def test_what_is_carried_over_counts_until_a_group_has_to_be_found(
    carried: dict[str, str], job: str, group: str
) -> None:
    session = open_world(CONFIG, *world(), carry=Carry(hyper_nodes={JOB: carried}))
    found = job_of(session, "j")
    assert session.topology.occupied[found.row] == job
    assert {each.allocated_hyper_node for each in session.sub_jobs(found).values()} == {group}


def in_groups(job_wish: Object | None, group_wish: Object | None) -> list[Object]:
    """The world, its job with another wish and of one group by its policy."""
    objects = world()
    group, *pods = objects[-3:]
    group["spec"] |= {"networkTopology": job_wish} if job_wish else {}
    if not job_wish:
        del group["spec"]["networkTopology"]
    policy = {"name": "p", "subGroupSize": 2, "matchLabelKeys": ["set"]}
    group["spec"]["subGroupPolicy"] = [policy | ({"networkTopology": group_wish} if group_wish else {})]
    for each in pods:
        each["metadata"]["labels"] = {"set": "0"}
    return objects


HARD: Object = {"mode": "hard", "highestTierAllowed": 1}


@pytest.mark.parametrize(("job_wish", "limit"), [(HARD, 1), (None, 3), ({"mode": "soft"}, 3)])
def test_a_soft_group_stays_below_what_its_job_allows(job_wish: Object | None, limit: int) -> None:
    session = open_world(CONFIG, *in_groups(job_wish, {"mode": "soft"}))
    (group,) = session.sub_jobs(job_of(session, "j")).values()
    wish = session.topology.of_sub_job(group)
    assert wish is not None
    assert wish.limit == limit


def test_where_a_job_is_is_remembered_though_its_group_asks_for_nothing() -> None:
    session = open_world(CONFIG, *in_groups(HARD, None), carry=Carry(hyper_nodes={JOB: {"": "r0"}}))
    session.carry.hyper_nodes = {}
    session.topology.remember()
    assert session.carry.hyper_nodes == {JOB: {"": "r0"}}


@pytest.mark.parametrize(("value", "index"), [("7", 7), ("-2", -2), ("+-3", 0), ("\u00b2", 0), ("9" * 40, 0), ("x", 0)])
def test_group_is_ordered_by_a_label_that_go_reads_as_a_number(value: str, index: int) -> None:
    objects = in_groups(HARD, None)
    for each in objects[-2:]:
        each["metadata"]["labels"] = {"set": value}
    session = open_world(CONFIG, *objects)
    (group,) = session.sub_jobs(job_of(session, "j")).values()
    assert group.match_index == index


def test_a_task_is_found_in_its_own_group() -> None:
    objects = in_groups(HARD, None)
    for number, each in enumerate(objects[-2:]):
        each["metadata"]["labels"] = {"set": str(number)}
    session = open_world(CONFIG, *objects)
    job = job_of(session, "j")
    found = [session.sub_job_of(job, task).uid for task in job.in_uid_order()]
    assert found == [f"{JOB}/p-0", f"{JOB}/p-1"]


def test_who_asks_for_nothing_and_waits_counts_among_those_of_his_group_that_are_ready() -> None:
    """Whoever does not and waits does not."""
    free: Object = {"cpu": None, "memory": None}
    group, running, waiting = gang("j", queue="q", pods=2, nodes=["n0"])
    session, other = (
        open_world(CONFIG, node("n0"), queue("q"), group, running, last)
        for last in (pod("j-1", group="j", **free), waiting)
    )
    counts = [each.sub_jobs(job_of(each, "j"))[JOB].ready_count(each.jobs) for each in (session, other)]
    assert counts == [2, 1]


def apart(name: str, *wishes: Object | None) -> list[Object]:
    """A job that asks for nothing itself, with a group of one pod on node n0 for each of these wishes."""
    group, *pods = gang(name, queue="q", pods=len(wishes), nodes=["n0"] * len(wishes), phase="Running")
    policies = group["spec"]["subGroupPolicy"] = list[Object]()
    for number, (each, wish) in enumerate(zip(pods, wishes, strict=True)):
        each["metadata"]["labels"] = labels = {"set": str(number)}
        chosen: Object = {"labelSelector": {"matchLabels": labels}, "matchLabelKeys": ["set"]}
        asked = {} if wish is None else {"networkTopology": wish}
        policies.append({"name": f"p{number}", "subGroupSize": 1, **chosen, **asked})
    return [group, *pods]


@pytest.mark.parametrize(
    ("wishes", "asks"), [([None, HARD], True), ([HARD, None], True), ([HARD, HARD], True), ([None, None], False)]
)
def test_a_job_asks_for_a_topology_where_any_of_its_groups_does(wishes: list[Object | None], asks: bool) -> None:
    session = open_world(CONFIG, *world(), apart("k", *wishes))
    assert session.topology.is_asked_for(job_of(session, "k")) is asks


def test_where_jobs_are_is_remembered_of_those_that_ask_for_it_wherever_they_stand() -> None:
    session = open_world(CONFIG, *world(), apart("i", None), apart("k", HARD))
    session.topology.remember()
    assert session.carry.hyper_nodes == {
        JOB: {"": "r0", JOB: "r0"},
        "default/k": {"": "r0", "default/k/p0-0": "r0"},
    }
