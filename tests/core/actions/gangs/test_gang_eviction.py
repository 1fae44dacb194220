"""gangpreempt and gangreclaim: spare tasks go before gangs break, whole bundles only where allowed, all or nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.config.schema import SchedulerConfig
from pumice.core.actions.gangs.bundles import Cost, bundles_of
from pumice.core.cycle import run_action
from pumice.core.life.task import TaskStatus
from pumice.core.objects.metadata import Object
from pumice.core.objects.pod import Task
from pumice.core.session.carry import Carry
from pumice.core.session.closing.close import pod_conditions
from pumice.core.session.session import Session
from tests.core.actions.crowds import after, classes, crowds, evictions, running, waiting, with_arguments
from tests.core.plugins.world import configuration, flatten, job_of, open_world
from tests.kit import node, queue
from tests.kit.hyper_nodes import hyper_node

CONFIG = configuration(["priority", "gang", "conformance"], ["predicates", "nodeorder", "network-topology-aware"])
WORLD = (node("n0", cpu="4"), node("n1", cpu="4"), queue("q"), classes())
FULL = ["n0"] * 4 + ["n1"] * 4


def low(least: int) -> list[Object]:
    return running("low", FULL, least=least, queue="q")


@pytest.mark.parametrize(("least", "spared", "rest"), [(8, 0, 8), (5, 3, 5), (0, 8, 0), (9, 8, 0)])
def test_a_job_spares_what_is_above_its_minimum(least: int, spared: int, rest: int) -> None:
    """A job that is not ready any more has nothing to lose: all of it is spare."""
    session = open_world(CONFIG, *WORLD, low(least))
    job = next(job for job in session.jobs.in_order if job.name == "low")
    bundles = {bundle.cost: bundle.tasks for bundle in bundles_of(session, job, job.tasks.values())}
    assert {cost: len(tasks) for cost, tasks in bundles.items()} == {
        cost: count for cost, count in ((Cost.SAFE, spared), (Cost.WHOLE, rest)) if count
    }


@pytest.mark.parametrize(("least", "groups", "spared"), [(1, 0, 5), (1, 1, 4), (1, 2, 2), (1, 3, 0), (4, 1, 2)])
def test_a_job_spares_whole_groups_beyond_its_policys_minimum(least: int, groups: int, spared: int) -> None:
    """Three groups of two."""
    group, *pods = running("low", ["n0"] * 3 + ["n1"] * 3, least=least, queue="q")
    policy = {"name": "p", "subGroupSize": 2, "minSubGroups": groups, "matchLabelKeys": ["set"]}
    group["spec"]["subGroupPolicy"] = [policy]
    for number, each in enumerate(pods):
        each["metadata"]["labels"] = {"set": str(number // 2)}
    session = open_world(CONFIG, *WORLD, group, *pods)
    job = job_of(session, "low")
    bundles = {bundle.cost: bundle.tasks for bundle in bundles_of(session, job, job.tasks.values())}
    assert len(bundles.get(Cost.SAFE, ())) == spared


def test_a_job_spares_what_is_above_the_minimum_of_each_role() -> None:
    group, *pods = running("low", ["n0"] * 4, least=2, queue="q")
    group["spec"]["minTaskMember"] = {"master": 1, "worker": 1}
    pods[0]["metadata"]["annotations"]["volcano.sh/task-spec"] = "master"
    session = open_world(CONFIG, *WORLD, group, *pods)
    job = job_of(session, "low")
    bundles = {bundle.cost: bundle.tasks for bundle in bundles_of(session, job, job.tasks.values())}
    assert [task.name for task in bundles[Cost.SAFE]] == ["low-1", "low-2"]


def test_a_whole_bundle_goes_whole_or_not_at_all() -> None:
    session = open_world(CONFIG, *WORLD, low(8))
    job = next(job for job in session.jobs.in_order if job.name == "low")
    whole = bundles_of(session, job, job.tasks.values())[0]
    uids = {task.uid for task in whole.tasks}
    assert whole.approved(uids) == whole
    assert whole.approved(uids - {whole.tasks[0].uid}) is None


def test_spare_tasks_suffice() -> None:
    session = after("gangpreempt", CONFIG, *WORLD, low(5), waiting("new", 1, queue="q", cpu="2"))
    assert len(evictions(session)) == 3
    assert {(evict.reason, evict.action) for evict in session.evicts} == {("gangpreempt", "gangpreempt")}
    assert {evict.preemptor for evict in session.evicts} == {"default/new"}
    assert {evict.score for evict in session.evicts} == {3.0}  # they meet all of the need in cpu, memory and pods


def test_a_gang_breaks_only_where_that_is_allowed() -> None:
    new = waiting("new", 2, queue="q", cpu="4")
    broken = after("gangpreempt", CONFIG, *WORLD, low(8), new)
    assert len(evictions(broken)) == 8
    assert {evict.score for evict in broken.evicts} == {3 / (8 / 8 + 8 / 2 + 8 / 2)}  # over what the gang loses
    careful = with_arguments(CONFIG, "gangpreempt", allowWholeBundle=False)
    assert evictions(after("gangpreempt", careful, *WORLD, low(8), new)) == []


@pytest.mark.parametrize(
    ("one", "other", "goes"),
    [
        ((4, "low"), (0, "mid"), "n1"),  # to break a job is worse than to take from one that is more important
        ((0, "mid"), (4, "low"), "n0"),
        ((0, "low"), (0, "mid"), "n0"),
        ((0, "mid"), (0, "low"), "n1"),
        ((4, "mid"), (4, "low"), "n1"),
    ],
)
def test_who_can_spare_goes_first_and_then_the_less_important(
    one: tuple[int, str], other: tuple[int, str], goes: str
) -> None:
    """The minimum and the class of a job on each node."""
    of_nodes = {"n0": one, "n1": other}.items()
    jobs = [running(at, [at] * 4, least=least, group=group, queue="q") for at, (least, group) in of_nodes]
    session = after("gangpreempt", CONFIG, *WORLD, *jobs, waiting("new", 2, queue="q", cpu="2"))
    assert [evict.node for evict in session.evicts] == [goes] * 4


def test_nobody_goes_for_a_gang_that_does_not_fit() -> None:
    objects = (*WORLD, low(0), waiting("new", 3, queue="q", cpu="4"))
    session, untouched = after("gangpreempt", CONFIG, *objects), open_world(CONFIG, *objects)
    assert evictions(session) == []
    assert list(session.jobs.status) == list(untouched.jobs.status)
    assert session.nodes.future.tolist() == untouched.nodes.future.tolist()


def test_a_hard_job_gets_its_room_within_one_rack() -> None:
    racks = [hyper_node("r0", 1, nodes=["n0"]), hyper_node("r1", 1, nodes=["n1"])]
    group, *pods = waiting("new", 2, queue="q", cpu="2")
    group = {**group, "spec": {**group["spec"], "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}}
    session = after("gangpreempt", CONFIG, *WORLD, racks, low(0), [group, *pods])
    assert {evict.node for evict in session.evicts} == {"n0"}
    assert len(evictions(session)) == 4


def test_a_job_without_a_hard_limit_may_have_room_anywhere_though_a_plugin_suggests_no_domain() -> None:
    session = open_world(CONFIG, *WORLD, low(5), waiting("new", 1, queue="q", cpu="2"))
    session.points.hyper_node_gradient_for_job.add("predicates", lambda _job, _domain, _purpose: [])
    run_action(session, "gangpreempt")
    assert len(evictions(session)) == 3


def test_reclaim_takes_from_other_queues_only() -> None:
    config = configuration(["priority", "gang", "conformance"], ["predicates", "nodeorder"])
    objects = (*WORLD, queue("poor"), low(4))
    session = after("gangreclaim", config, *objects, waiting("new", 2, queue="poor", cpu="2"))
    assert len(evictions(session)) == 4
    assert {(evict.reason, evict.preemptor) for evict in session.evicts} == {("gangreclaim", "default/new")}
    assert all(evict.score > 0 for evict in session.evicts)
    assert evictions(after("gangreclaim", config, *objects, waiting("new", 2, queue="q", cpu="2"))) == []


@given(crowds(), st.sampled_from(["gangpreempt", "gangreclaim"]))
def test_without_whole_bundles_no_ready_gang_breaks(objects: list[Object], action: str) -> None:
    session = after(action, with_arguments(CONFIG, action, allowWholeBundle=False), objects)
    before = open_world(CONFIG, objects)
    for job in session.jobs.in_order:
        twin = next(other for other in before.jobs.in_order if other.key == job.key)
        if before.jobs.ready_count(twin) >= job.pod_group.min_member:
            assert session.jobs.ready_count(job) >= job.pod_group.min_member
    for job in session.jobs.in_order:
        promised = session.jobs.tasks_in(job, TaskStatus.PIPELINED)
        assert not promised or session.job_pipelined(job)


def next_morning(fix: tuple[str, ...], *rest: Object) -> Session:
    """The cycle after one in which gangpreempt made room on the second node; its victims are gone."""
    config = configuration(["priority", "gang", "conformance"], ["predicates", "nodeorder"], fix=fix)
    firm = running("firm", ["n0"] * 4, group="high", least=4, queue="q")
    new = waiting("new", 2, queue="q", cpu="2", created="2026-01-01T05:00:00Z")
    session = after("gangpreempt", config, *WORLD, firm, running("low", ["n1"] * 4, least=0, queue="q"), new)
    assert {evict.node for evict in session.evicts} == {"n1"}
    nominated = {task.name: "n1" for task in session.jobs.tasks_in(job_of(session, "new"), TaskStatus.PIPELINED)}
    session.nominations.remember()
    carry = Carry.from_dict(session.carry.to_dict())
    for one in new[1:]:
        one["status"]["nominatedNodeName"] = nominated[one["metadata"]["name"]]
    later = open_world(config, *WORLD, firm, new, *rest, carry=carry)
    run_action(later, "allocate")
    return later


FIX = ("nominated-domains-last",)


@pytest.mark.parametrize(("fix", "first"), [((), "rival"), (FIX, "new")])
def test_room_that_was_made_is_kept_unless_mended(fix: tuple[str, ...], first: str) -> None:
    """The rival comes first by its age, and there is room for one of them."""
    later = next_morning(fix, *waiting("rival", 2, queue="q", cpu="2", created="2026-01-01T00:00:00Z"))
    assert {bind.name for bind in later.binds} == {f"{first}-0", f"{first}-1"}
    later.nominations.remember()
    assert later.carry.nominated == {}  # redeemed, or never carried


def test_room_that_is_still_in_use_stays_nominated() -> None:
    tenant = running("tenant", ["n1"] * 4, least=1, queue="q")
    for one in tenant[1:]:
        one["metadata"]["deletionTimestamp"] = "2026-01-01T11:59:00Z"
    later = next_morning(FIX, *tenant)
    assert later.binds == []
    later.nominations.remember()
    assert [list(places.values()) for places in later.carry.nominated.values()] == [[later.topology.tree.top.name]]


def test_a_nomination_that_cannot_be_kept_is_void() -> None:
    later = next_morning(FIX, *running("thief", ["n1"] * 4, group="high", least=4, queue="q"))
    assert later.binds == []
    assert {task.name: later.nominated_node(task) for task in later.voided} == {"new-0": "", "new-1": ""}
    assert {said.name: said.nominated for said in pod_conditions(later)} == {"new-0": None, "new-1": None}
    later.nominations.remember()
    assert later.carry.nominated == {}


def with_room_in_a_rack() -> tuple[SchedulerConfig, list[Object], Carry]:
    """A cycle after one in which gangpreempt made room in the second rack for a job that wants to be in one."""
    tiers = ["priority", "gang", "conformance"], ["predicates", "nodeorder", "network-topology-aware"]
    config = configuration(*tiers, fix=FIX)
    racks = [hyper_node("r0", 1, nodes=["n0"]), hyper_node("r1", 1, nodes=["n1"])]
    group, *pods = waiting("new", 2, queue="q", cpu="2")
    group = {**group, "spec": {**group["spec"], "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}}
    old = [*running("firm", ["n0"] * 4, group="high", least=4, queue="q"), *running("low", ["n1"] * 4, queue="q")]
    session = after("gangpreempt", config, *WORLD, racks, old, [group, *pods])
    assert {evict.node for evict in session.evicts} == {"n1"}
    session.nominations.remember()
    for one in pods:
        one["status"]["nominatedNodeName"] = "n1"
    return config, flatten([*WORLD, racks, group, pods]), Carry.from_dict(session.carry.to_dict())


def test_a_job_goes_to_the_rack_where_room_was_made_though_another_is_free_by_now() -> None:
    """Both are the same to it, and the other comes first by its name."""
    config, objects, carry = with_room_in_a_rack()
    later = open_world(config, objects, carry=carry)
    run_action(later, "allocate")
    assert [bind.node for bind in later.binds] == ["n1", "n1"]
    anew = open_world(config, objects)
    run_action(anew, "allocate")
    assert [bind.node for bind in anew.binds] == ["n0", "n0"]


def test_who_is_told_of_a_placement_where_room_was_made_finds_the_rack_that_its_group_heads_for() -> None:
    config, objects, carry = with_room_in_a_rack()
    later = open_world(config, objects, carry=carry)
    told: list[str] = []

    def noting(task: Task, node: int) -> None:
        told.append(later.topology.heading.get(task.row, ""))

    later.points.handle(noting)
    run_action(later, "allocate")
    assert told[:2] == ["r1", "r1"]


@pytest.mark.parametrize(("fix", "evicted"), [((), 3), (("gangs-evict-no-more",), 2)])
def test_no_more_of_what_a_job_spares_is_evicted_than_needed_under_the_fix(fix: tuple[str, ...], evicted: int) -> None:
    tiers = (["priority", "gang", "conformance"], ["predicates", "nodeorder", "network-topology-aware"])
    session = after(
        "gangpreempt", configuration(*tiers, fix=fix), *WORLD, low(5), waiting("new", 1, queue="q", cpu="2")
    )
    assert len(evictions(session)) == evicted
    assert session.jobs.waiting_count(job_of(session, "new")) == 1


def test_bundle_that_breaks_a_job_still_goes_whole_under_the_fix() -> None:
    config = configuration(["priority", "gang"], ["predicates", "nodeorder"], fix=["gangs-evict-no-more"])
    session = after("gangpreempt", config, *WORLD, low(8), waiting("new", 1, queue="q", cpu="2"))
    assert len(evictions(session)) == 8


@pytest.mark.parametrize(("fix", "evicted"), [((), 4), (("gangs-evict-no-more",), 1)])
def test_gangreclaim_evicts_no_more_than_needed_under_the_fix(fix: tuple[str, ...], evicted: int) -> None:
    config = configuration(["priority", "gang"], ["proportion", "predicates", "nodeorder"], fix=fix)
    old = running("old", ["n0"] * 4, least=0, queue="rich")
    queues = [queue("rich"), queue("poor")]
    session = after("gangreclaim", config, node("n0", cpu="4"), queues, classes(), old, waiting("new", 1, queue="poor"))
    assert len(evictions(session)) == evicted
