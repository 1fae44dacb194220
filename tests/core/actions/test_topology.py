"""Allocation over domains: hard jobs stay within their tier, trials leave nothing behind, soft jobs keep together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from pumice.config.schema import SchedulerConfig
from pumice.core.actions.placing.domains import Decisions, DomainAllocator
from pumice.core.actions.placing.task_loop import HEADED, NAMED
from pumice.core.actions.placing.worksheet import LINGERS, organize
from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import Carry, CycleClock, open_session, run_action, run_cycle
from pumice.core.life.task import TaskStatus
from pumice.core.session.points.votes import Vote
from pumice.core.state.view import View
from pumice.questions.adviser.waiting_jobs import waiting_jobs_of
from pumice.questions.explain.scene import Scene
from tests.core.plugins.world import job_of, open_world, task_of
from tests.kit.hyper_nodes import hyper_node
from tests.kit.jobs import gang
from tests.kit.nodes import node, taint
from tests.kit.pods import pod
from tests.kit.queues import queue

CONFIG = parse_scheduler_config(
    """
actions: "allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: network-topology-aware}]
""",
    source="test",
)
WITHOUT_GANG = parse_scheduler_config(
    """
actions: "allocate"
tiers:
- plugins: [{name: priority}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: network-topology-aware}]
""",
    source="test",
)
RACKS, NODES_A_RACK = 4, 3


def asking(objects: list[dict[str, Any]], wish: dict[str, Any]) -> list[dict[str, Any]]:
    group, *pods = objects
    return [{**group, "spec": {**group["spec"], "networkTopology": wish}}, *pods]


def cluster(draw: Any) -> View:
    """Four racks of three nodes under two spines, some nodes partly taken, and a few jobs of every wish."""
    view = View()
    objects = [queue("q")]
    for rack in range(RACKS):
        names = [f"n{rack}-{i}" for i in range(NODES_A_RACK)]
        objects += [node(name, cpu="4") for name in names]
        objects.append(hyper_node(f"r{rack}", 1, nodes=names))
        for name in names:
            if draw(st.booleans()):
                objects.append(pod(f"old-{name}", group="old", node=name, cpu=str(draw(st.integers(1, 4)))))
    objects += [hyper_node(f"s{i}", 2, children=[f"r{2 * i}", f"r{2 * i + 1}"]) for i in range(2)]
    for j in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1, 8))
        least = draw(st.integers(1, size))
        job = gang(f"j{j}", queue="q", pods=size, min_member=least, phase="Inqueue", cpu=str(draw(st.integers(1, 3))))
        wish = draw(
            st.sampled_from(
                ({"mode": "hard", "highestTierAllowed": 1}, {"mode": "hard", "highestTierAllowed": 2}, {"mode": "soft"})
            )
        )
        objects += asking(job, wish)
    for obj in objects:
        view.apply("ADDED", obj)
    return view


@given(st.data())
def test_a_hard_job_stays_within_its_tier(data: st.DataObject) -> None:
    view = cluster(data.draw)
    result = run_cycle(view.snapshot(), CONFIG, CycleClock(1, 0.0), Carry())
    places: dict[str, set[str]] = {}
    for bind in result.binds:
        places.setdefault(bind.job, set()).add(bind.node)
    for key, nodes in places.items():
        spec = view.jobs.by_key[key].pod_group
        assert spec.network_topology is not None
        racks = {int(name[1 : name.index("-")]) for name in nodes}
        highest = spec.network_topology.get("highestTierAllowed")
        assert highest != 1 or len(racks) == 1
        assert highest != 2 or len({rack // 2 for rack in racks}) == 1


def never(*_: object) -> bool:
    """No job is simple: every domain is tried."""
    return False


@given(st.data())
@pytest.mark.parametrize("config", [CONFIG, WITHOUT_GANG], ids=["gang", "without-gang"])
def test_trying_by_promise_decides_as_trying_all(config: SchedulerConfig, data: st.DataObject) -> None:
    view = cluster(data.draw)
    by_promise = run_cycle(view.snapshot(), config, CycleClock(1, 0.0), Carry(), report=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DomainAllocator, "_is_simple", never)
        exhaustive = run_cycle(view.snapshot(), config, CycleClock(1, 0.0), Carry(), report=True)
    assert by_promise.digest == exhaustive.digest
    assert by_promise.carry == exhaustive.carry
    assert by_promise.report.pending == exhaustive.report.pending


@pytest.mark.parametrize("busy", ["n0", "n1", None])
@pytest.mark.parametrize("racks", [2, 1])
def test_the_reasons_that_stay_are_those_of_the_last_rack_in_line_in_whichever_order_they_are_tried(
    busy: str | None, racks: int
) -> None:
    """The fuller one promises more and is tried first."""
    nodes = [node("n0", cpu="2"), node("n1", taints=[taint("a")])][-racks:]
    names = [each["metadata"]["name"] for each in nodes]
    hard = asking(gang("j", queue="q", pods=2, phase="Inqueue", cpu="2"), {"mode": "hard", "highestTierAllowed": 1})
    old = [pod("old", group="old", node=busy, cpu="1")] if busy in names else []
    view = View()
    for obj in (queue("q"), *nodes, *[hyper_node(f"r{name}", 1, nodes=[name]) for name in names], *old, *hard):
        view.apply("ADDED", obj)
    result = run_cycle(view.snapshot(), CONFIG, CycleClock(1, 0.0), Carry(), report=True)
    assert result.binds == ()
    assert "untolerated taint" in result.report.pending["default/j-0"].message


@given(st.data())
def test_a_trial_leaves_no_trace(data: st.DataObject) -> None:
    session = open_session(cluster(data.draw).snapshot(), CONFIG, CycleClock(1, 0.0), Carry())
    nodes, jobs = session.nodes, session.snapshot.jobs
    columns: list[npt.NDArray[Any]] = [
        nodes.idle,
        nodes.used,
        nodes.releasing,
        nodes.pipelined,
        nodes.future,
        session.kube.requested,
    ]
    columns += [jobs.allocated, jobs.pending, jobs.counts, session.snapshot.tasks.status, session.snapshot.tasks.node]
    before = [np.array(column) for column in columns]
    for job in session.jobs.in_order:
        if not session.jobs.has_pending(job):
            continue
        statement = DomainAllocator(session, Decisions(session), cache_errors=True).allocate(
            job, organize(session, job)
        )
        if statement is not None:
            statement.discard()
        for column, was in zip(columns, before, strict=True):
            assert np.array_equal(column, was)


def test_a_soft_job_keeps_together_when_it_can() -> None:
    view = View()
    for obj in (
        queue("q"),
        *(node(f"n{i}", cpu="2") for i in range(4)),
        hyper_node("r0", 1, nodes=["n0", "n2"]),
        hyper_node("r1", 1, nodes=["n1", "n3"]),
        *asking(gang("j", queue="q", pods=4, phase="Inqueue"), {"mode": "soft"}),
    ):
        view.apply("ADDED", obj)
    result = run_cycle(view.snapshot(), CONFIG, CycleClock(1, 0.0), Carry())
    assert sorted({bind.node for bind in result.binds}) == ["n0", "n2"]
    assert result.carry["hyper_nodes"] == {"default/j": {"": "r0", "default/j": "r0"}}


def test_an_unfit_tree_holds_jobs_with_a_topology_back_and_says_why() -> None:
    view = View()
    for obj in (
        queue("q"),
        node("n0"),
        hyper_node("x", 2, children=["y"]),
        hyper_node("y", 3, children=["x"]),
        *asking(gang("j", queue="q", pods=1, phase="Inqueue"), {"mode": "soft"}),
        *gang("plain", queue="q", pods=1, phase="Inqueue"),
    ):
        view.apply("ADDED", obj)
    result = run_cycle(view.snapshot(), CONFIG, CycleClock(1, 0.0), Carry(), report=True)
    assert [bind.name for bind in result.binds] == ["plain-0"]
    (waiting,) = waiting_jobs_of(Scene(view, CONFIG, CycleClock(1, 0.0), Carry())).waiting
    assert (waiting.job, "cyclic dependency" in waiting.wait.sentence) == ("default/j", True), waiting.wait


def test_a_hard_job_is_promised_a_rack_whose_pods_are_leaving() -> None:
    staying, leaving = (gang(f"on-{at}", queue="q", pods=1, nodes=[at], cpu="4") for at in ("n0", "n1"))
    leaving[1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    hard = asking(gang("j", queue="q", pods=2, phase="Inqueue", cpu="2"), {"mode": "hard", "highestTierAllowed": 1})
    racks = [hyper_node(f"r{i}", 1, nodes=[f"n{i}"]) for i in range(2)]
    session = open_world(CONFIG, node("n0", cpu="4"), node("n1", cpu="4"), queue("q"), racks, leaving, staying, hard)
    run_action(session, "allocate")
    promised = session.jobs.tasks_in(job_of(session, "j"), TaskStatus.PIPELINED)
    assert [session.nodes.names[session.jobs.node[task.row]] for task in promised] == ["n1", "n1"]


def test_a_job_has_no_more_groups_placed_in_its_turn_than_make_it_ready() -> None:
    """Then it is the turn of others, for whom there would be no room any more."""
    jobs = [gang(name, queue="q", pods=pods, min_member=2, phase="Inqueue") for name, pods in (("a", 4), ("b", 2))]
    for group, *pods in jobs:
        group["spec"]["subGroupPolicy"] = [{"name": "p", "subGroupSize": 2, "matchLabelKeys": ["set"]}]
        for number, each in enumerate(pods):
            each["metadata"]["labels"] = {"set": str(number // 2)}
    session = open_world(CONFIG, node("n0", cpu="4"), queue("q"), *jobs)
    run_action(session, "allocate")
    assert sorted(bind.name for bind in session.binds) == ["a-0", "a-1", "b-0", "b-1"]


def test_nothing_stays_in_a_rack_for_a_job_that_is_called_ready_and_then_is_not() -> None:
    """As an extender may, asked once its pods are placed, and at the end of that, and for the job as a whole."""
    hard = asking(gang("j", queue="q", pods=1, phase="Inqueue"), {"mode": "hard", "highestTierAllowed": 1})
    session = open_world(CONFIG, node("n0"), queue("q"), hyper_node("r0", 1, nodes=["n0"]), hard)
    answers = iter([True, True])
    session.points.job_ready.add("gang", lambda job: next(answers, False))
    session.points.job_pipelined.add("gang", lambda job: Vote.REJECT)
    before = session.nodes.idle.copy()
    run_action(session, "allocate")
    assert next(answers, None) is None
    assert session.binds == []
    assert np.array_equal(session.nodes.idle, before)
    assert session.jobs.status[task_of(session, "j-0").row] == TaskStatus.PENDING


def fixed(*fix: str) -> SchedulerConfig:
    return structs.replace(CONFIG, pumice=structs.replace(CONFIG.pumice, fix=fix))


@pytest.mark.parametrize(("fix", "told"), [((), ["0/1 nodes are unavailable: 1 Insufficient cpu."]), ((LINGERS,), [])])
def test_job_group_without_room_keeps_its_reason_after_another_is_placed(fix: tuple[str, ...], told: list[str]) -> None:
    """A group that was tried in vain has left the line. A second turn of the job would forget the reason."""
    group, *pods = gang("j", pods=3, min_member=2, queue="q", phase="Inqueue", cpu="2", memory=None)
    group["spec"]["subGroupPolicy"] = [{"name": "p", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["set"]}]
    for each, of in zip(pods, "011", strict=True):
        each["metadata"].setdefault("labels", {})["set"] = of
    pods[0]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "8"
    session = open_world(fixed(*fix), node("n0", cpu="4"), queue("q"), group, *pods)
    run_action(session, "allocate")
    assert [bind.name for bind in session.binds] == ["j-1", "j-2"]
    assert [errors.message() for errors in session.fit.errors_of(job_of(session, "j")).values()] == told


@pytest.mark.parametrize(("fix", "head"), [((), ""), ((NAMED,), "In hyperNode r0: ")])
def test_domain_is_not_named_for_a_pod_that_fits_nowhere(fix: tuple[str, ...], head: str) -> None:
    """Volcano names the HyperNode of what filters say of its nodes, and not of a claim that is missing."""
    hard = asking(gang("j", queue="q", pods=1, phase="Inqueue"), {"mode": "hard", "highestTierAllowed": 1})
    hard[1]["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}]
    session = open_world(fixed(*fix), node("n0"), queue("q"), hyper_node("r0", 1, nodes=["n0"]), hard)
    run_action(session, "allocate")
    (errors,) = session.fit.errors_of(job_of(session, "j")).values()
    assert errors.message().startswith(f"{head}0/1 nodes are unavailable: 1 plugin ")


@pytest.mark.parametrize(("fix", "scored_by"), [((), ""), ((HEADED,), "r0")])
def test_task_that_found_no_node_heads_for_no_domain(fix: tuple[str, ...], scored_by: str) -> None:
    """Volcano notes the HyperNode of the group once a node is found; gangpreempt scores the rest without it."""
    gang_of_three = gang("j", queue="q", pods=3, phase="Inqueue", cpu="2500m")
    hard, nodes = asking(gang_of_three, {"mode": "hard", "highestTierAllowed": 1}), ["n0", "n1"]
    rack = hyper_node("r0", 1, nodes=nodes)
    session = open_world(fixed(*fix), *(node(name, cpu="4") for name in nodes), queue("q"), rack, hard)
    run_action(session, "allocate")
    assert session.binds == []
    found = [session.topology.heading.get(task_of(session, f"j-{number}").row, "") for number in range(3)]
    assert found == ["", "", scored_by]
