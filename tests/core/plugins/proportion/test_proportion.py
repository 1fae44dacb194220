"""proportion over whole sessions: shares, limits, admission, victims, trials."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.cycle import Carry, CycleClock, deserved_in, let_go, open_session, run_action, tables_later
from pumice.core.messages.queue_tables import gauged, readable
from pumice.core.plugins.proportion import Proportion, ProportionAttributes
from pumice.core.resources import Resource
from pumice.core.session.session import Session
from pumice.core.state.view import View
from tests.core.plugins.world import configuration, evictable, job_of, open_world, task_of
from tests.kit import gang, node, pod, pod_group, queue

CONFIG = configuration(["gang"], ["predicates", "proportion"])


def plugin(session: Session) -> Proportion:
    found = session.plugins["proportion"]
    assert isinstance(found, Proportion)
    return found


def two_queues() -> Session:
    """q (weight 3) runs 6 cpu of 8, p (weight 1) asks for 4 more and runs 1."""
    return open_world(
        CONFIG,
        node("n", cpu="8", memory="64Gi"),
        queue("q", weight=3),
        queue("p", weight=1),
        gang("big", queue="q", pods=6, nodes=["n"] * 6, phase="Running", min_member=1),
        gang("small", queue="p", pods=5, nodes=["n"], phase="Running", min_member=1),
    )


def test_what_one_queue_does_not_ask_for_goes_to_the_other() -> None:
    attributes = plugin(two_queues()).attributes
    assert attributes["q"].deserved.milli_cpu == 6000
    assert attributes["p"].deserved.milli_cpu == 2000
    assert attributes["q"].share == 1.0
    assert attributes["p"].share == 0.5


def test_the_smaller_share_goes_first_and_priority_before_all() -> None:
    session = two_queues()
    q, p = session.queues["q"], session.queues["p"]
    assert session.points.queue_order.before(p, q)
    high = open_world(CONFIG, node("n"), queue("q", priority=5), queue("p"), pod_group("a", queue="q"))
    assert high.points.queue_order.before(high.queues["q"], high.queues["p"])


def test_overused_is_to_have_all_one_deserves() -> None:
    session = two_queues()
    assert session.points.overused(session.queues["q"])
    assert not session.points.overused(session.queues["p"])


def test_a_queue_that_asks_for_nothing_deserves_nothing_and_is_overused() -> None:
    session = open_world(CONFIG, node("n"), queue("q"), pod_group("empty", queue="q"))
    assert session.points.overused(session.queues["q"])


def test_allocation_stays_within_deserved_and_follows_what_is_placed() -> None:
    session = two_queues()
    queue_p, task = session.queues["p"], task_of(session, "small-1")
    assert session.points.allocatable(queue_p, task)
    statement = session.statement()
    assert statement.allocate(task, 0)
    assert plugin(session).attributes["p"].share == 1.0
    assert not session.points.allocatable(queue_p, task_of(session, "small-2"))
    statement.discard()
    assert plugin(session).attributes["p"].share == 0.5
    assert session.points.allocatable(queue_p, task_of(session, "small-2"))


def test_what_is_placed_is_credited_to_its_own_queue() -> None:
    """In turns, so that nothing that was found for the task before is taken for the one after."""
    session = open_world(
        CONFIG,
        node("n", cpu="16", memory="64Gi"),
        queue("q"),
        queue("p"),
        gang("a", queue="q", pods=3, cpu="1"),
        gang("b", queue="p", pods=3, cpu="2"),
        gang("c", queue="q", pods=1, cpu="3"),
    )
    attributes, statement = plugin(session).attributes, session.statement()

    def held() -> tuple[float, float]:
        return attributes["q"].allocated.milli_cpu, attributes["p"].allocated.milli_cpu

    expected = [0.0, 0.0]
    for name in ("a-0", "b-0", "a-1", "c-0", "b-1"):
        task = task_of(session, name)
        assert statement.allocate(task, 0)
        expected[name.startswith("b")] += task.template.request.milli_cpu
        assert held() == tuple(expected)
    statement.discard()
    assert held() == (0.0, 0.0)


def test_what_is_evicted_is_taken_from_its_own_queue() -> None:
    session = two_queues()
    attributes, statement = plugin(session).attributes, session.statement()
    for name in ("small-0", "big-0", "big-1"):
        statement.evict(task_of(session, name), "preempt")
    assert (attributes["q"].allocated.milli_cpu, attributes["p"].allocated.milli_cpu) == (4000, 0)
    statement.discard()
    assert (attributes["q"].allocated.milli_cpu, attributes["p"].allocated.milli_cpu) == (6000, 1000)


AMOUNTS = st.builds(
    Resource,
    st.sampled_from([0.0, 0.05, 1000.0, 1000.1]),
    st.sampled_from([0.0, 1.0, 2.0]),
    st.none() | st.dictionaries(st.sampled_from(["pods", "nvidia.com/gpu", "x"]), st.sampled_from([0.0, 1.0, 2.0])),
)


@given(allocated=AMOUNTS, deserved=AMOUNTS, request=AMOUNTS)
def test_room_is_volcanos_comparison(allocated: Resource, deserved: Resource, request: Resource) -> None:
    attributes = ProportionAttributes("q", allocated, Resource(), deserved)
    future = allocated.clone().add(request)
    expected, _ = future.less_equal_with_dimension_and_resources_name(deserved, request)
    assert attributes.has_room_for(request) == expected
    assert ProportionAttributes("q", Resource(), Resource(), deserved).has_room_for(request, allocated) == expected


@pytest.mark.parametrize("state", ["Closed", "Closing", "Unknown", ""])
def test_a_queue_that_is_not_open_gets_nothing(state: str) -> None:
    session = open_world(CONFIG, node("n"), queue("q", state=state), gang("j", queue="q", pods=1))
    assert not session.points.allocatable(session.queues["q"], task_of(session, "j-0"))
    assert not session.points.preemptive(session.queues["q"], [task_of(session, "j-0")])
    assert not session.points.job_enqueueable(job_of(session, "j"))


def test_preemptive_counts_all_tasks_together() -> None:
    session = two_queues()
    tasks = [task_of(session, "small-1"), task_of(session, "small-2")]
    assert session.points.preemptive(session.queues["p"], tasks[:1])
    assert not session.points.preemptive(session.queues["p"], tasks)


def test_victims_stop_where_the_queue_is_down_to_what_it_deserves() -> None:
    session = open_world(
        configuration(["proportion"]),
        node("n", cpu="8", memory="64Gi"),
        queue("q"),
        queue("p"),
        gang("rich", queue="q", pods=6, nodes=["n"] * 6, phase="Running"),
        gang("poor", queue="p", pods=6, nodes=["n"] * 2, phase="Running"),
    )
    pods = [f"rich-{i}" for i in range(6)]
    assert evictable(session, "Reclaimable", task_of(session, "poor-5"), *pods) == ["rich-0", "rich-1"]
    assert evictable(session, "Reclaimable", task_of(session, "poor-5"), "poor-0") == []


@pytest.mark.parametrize(("fix", "second"), [((), False), (("enqueue-charges-once",), True)])
def test_a_vote_charges_immediately_unless_mended(fix: tuple[str, ...], second: bool) -> None:
    session = open_world(
        configuration(["proportion"], fix=fix),
        node("n", cpu="8", memory="64Gi"),
        queue("q", capability={"cpu": "6"}),
        pod_group("a", queue="q", min_resources={"cpu": "4"}),
        pod_group("b", queue="q", min_resources={"cpu": "4"}),
    )
    assert session.points.job_enqueueable(job_of(session, "a"))  # asked, but never admitted
    assert session.points.job_enqueueable(job_of(session, "b")) is second
    session.points.job_enqueued(job_of(session, "a"))
    assert not session.points.job_enqueueable(job_of(session, "b"))


def test_admission_counts_what_is_allocated_and_promised_less_what_can_be_given_back() -> None:
    session = open_world(
        CONFIG,
        node("n", cpu="8", memory="64Gi"),
        queue("q", capability={"cpu": "6"}),
        gang("run", queue="q", pods=4, nodes=["n"] * 4, phase="Running", min_member=1),
        pod_group("in", queue="q", phase="Inqueue", min_resources={"cpu": "1"}),
        pod_group("fits", queue="q", min_resources={"cpu": "5"}),
        pod_group("too-much", queue="q", min_resources={"cpu": "5100m"}),
    )
    # The running job has no minResources, so all four cores are elastic; one is promised: 6 - 1 remain.
    assert not session.points.job_enqueueable(job_of(session, "too-much"))
    assert session.points.job_enqueueable(job_of(session, "fits"))


def test_a_trial_changes_nothing_but_itself() -> None:
    session = two_queues()
    state: dict[str, object] = {}
    victim, wanting = task_of(session, "small-0"), task_of(session, "small-1")
    p = session.queues["p"]
    assert session.points.simulate_allocatable(state, p, wanting)
    assert session.points.simulate_add_task.rules[-1](state, wanting, task_of(session, "small-2"), 0) is None
    assert not session.points.simulate_allocatable(state, p, wanting)
    assert session.points.simulate_remove_task.rules[-1](state, wanting, victim, 0) is None
    assert session.points.simulate_allocatable(state, p, wanting)
    assert plugin(session).attributes["p"].allocated.milli_cpu == 1000


def test_gauges_name_every_queue_in_the_words_of_the_metrics() -> None:
    session = open_world(
        CONFIG,
        node("n", cpu="8", gpus=1),
        queue("q", weight=2),
        queue("idle"),
        pod("x"),
        gang("j", queue="q", pods=2, nodes=["n"], phase="Running", min_member=1),
    )
    gauges = plugin(session).gauges().columns().by_queue()
    assert gauges["idle"] == {
        "allocated_milli_cpu": 0,
        "allocated_memory_bytes": 0,
        "request_milli_cpu": 0,
        "request_memory_bytes": 0,
    }
    assert gauges["q"]["weight"] == 2
    assert gauges["q"]["deserved_milli_cpu"] == gauges["q"]["request_milli_cpu"] == 2000
    assert gauges["q"]["deserved_scalar_resources:nvidia.com/gpu"] == 0
    assert gauges["q"]["share"] == 0.5


def test_queues_with_more_jobs_than_room_share_by_weight_through_whole_cycles() -> None:
    session = open_world(
        CONFIG,
        node("n", cpu="8", memory="64Gi"),
        queue("q", weight=3),
        queue("p", weight=1),
        gang("a", queue="q", pods=10, phase="Inqueue", min_member=1),
        gang("b", queue="p", pods=10, phase="Inqueue", min_member=1),
    )
    run_action(session, "allocate")
    queues = [session.queue_of(job_of(session, bind.job.removeprefix("default/"))).name for bind in session.binds]
    assert (queues.count("q"), queues.count("p")) == (6, 2)


def test_amounts_that_have_no_metric() -> None:
    session = open_world(
        CONFIG,
        node("n", cpu="8"),
        queue("q", guarantee={"cpu": "2"}, capability={"cpu": "3"}),
        queue("idle"),
        gang("j", queue="q", pods=2, nodes=["n"] * 2, phase="Running", min_member=1),
        pod_group("in", queue="q", phase="Inqueue", min_resources={"cpu": "1"}),
    )
    found = plugin(session).amounts().columns().by_queue()
    names = ("guarantee", "real_capacity", "inqueue", "elastic")
    shown = {queue: [found[queue][f"{name}_milli_cpu"] for name in names] for queue in ("q", "idle")}
    assert shown == {"q": [2000, 3000, 1000, 2000], "idle": [0, 6000, 0, 0]}  # every queue, one without jobs as well


def test_overused_is_shown_as_it_is_asked_for() -> None:
    session = open_world(
        CONFIG,
        node("n", cpu="8", memory="8Gi", gpus=1),
        queue("q", weight=3),
        queue("p", weight=1),
        queue("idle"),
        gang("a", queue="q", pods=7, phase="Inqueue", min_member=1),
        gang("b", queue="p", pods=1, nodes=["n"], phase="Running"),
    )
    for cycle in ("at the opening", "in the end"):
        shown = {
            name: numbers.get("overused") for name, numbers in plugin(session).verdicts().columns().by_queue().items()
        }
        asked = {name: float(plugin(session).overused(session.queues[name])) for name in ("p", "q")}
        assert shown == {**asked, "idle": None}, cycle
        run_action(session, "allocate")
    assert asked == {"p": 1.0, "q": 1.0}


def test_a_queue_may_be_the_first_to_name_a_scalar() -> None:
    session = open_world(
        CONFIG,
        node("n", cpu="8"),
        queue("q", guarantee={"fpga.example.com/card": "2"}),
        gang("j", queue="q", pods=1, nodes=["n"], phase="Running"),
    )
    assert plugin(session).attributes["q"].deserved.get("fpga.example.com/card") == 2000
    assert plugin(session).gauges().columns().by_queue()["q"]["deserved_scalar_resources:fpga.example.com/card"] == 2000


AMOUNT = st.sampled_from(["0", "1", "2500m", "7"])
QUEUES = st.lists(st.tuples(st.integers(0, 3), AMOUNT, AMOUNT), min_size=1, max_size=3)
JOBS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), AMOUNT, AMOUNT, st.booleans()), max_size=6)


@given(QUEUES, JOBS)
def test_what_queues_deserve_is_known_without_a_session(
    queues: list[tuple[int, str, str]], jobs: list[tuple[int, int, str, str, bool]]
) -> None:
    view = View()
    view.apply("ADDED", node("n", cpu="16", memory="64Gi", extra={"nvidia.com/gpu": "4"}))
    for number, (weight, most, least) in enumerate(queues):
        capability = {"cpu": most} if most != "0" else None
        view.apply("ADDED", queue(f"q{number}", weight=weight, capability=capability, guarantee={"cpu": least}))
    for number, (of, pods, cpu, gpus, runs) in enumerate(jobs):
        asks: dict[str, Any] = {"cpu": cpu, "extra": {"nvidia.com/gpu": gpus.replace("2500m", "3")}}
        where, phase = (["n"] * pods, "Running") if runs else ([], "Pending")
        for obj in gang(f"j{number}", queue=f"q{of}", pods=pods, nodes=where, phase=phase, **asks):
            view.apply("ADDED", obj)
    clock = CycleClock(1, 0.0)
    for kept in (False, True, True, True):
        tables = deserved_in(view.snapshot(kept=kept), CONFIG, clock)
        session = open_session(view.snapshot(kept=kept), CONFIG, clock, Carry())
        told = readable(tables_later(session)())
        let_go(session)
        found, expected = readable(tables, "deserved").by_queue(), told.by_queue()
        assert len(tables[0].tables) < 2
        for name in expected:
            assert gauged(found[name], "deserved") == gauged(expected[name], "deserved")
