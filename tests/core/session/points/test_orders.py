"""Orders: a queue with keys gives what the live heap gives while only the job out of the queue changes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import Carry, CycleClock, open_session
from pumice.core.session.heap import KeyedQueue, PriorityQueue, SortedQueue
from pumice.core.state.view import View
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.kit.priority_classes import priority_class
from tests.kit.queues import queue

SECOND = "2026-01-01T00:00:0{}Z"
CONFIG = parse_scheduler_config(
    """
actions: "allocate"
tiers:
- plugins: [{name: tdm}, {name: sla}, {name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}]
""",
    source="test",
)


@st.composite
def clusters(draw: st.DrawFn) -> View:
    view = View()
    objects: list[dict[str, Any]] = [
        queue("q"),
        node("n0", cpu="64"),
        priority_class("high", 9),
        priority_class("low", 1),
    ]
    for number in range(draw(st.integers(2, 9))):
        size = draw(st.integers(1, 3))
        running = draw(st.integers(0, size))
        group, *pods = gang(
            f"j{number}",
            queue="q",
            pods=size,
            min_member=draw(st.integers(1, size)),
            priority_class=draw(st.sampled_from((None, "high", "low"))),
            nodes=["n0"] * running,
            created=f"2026-01-01T00:00:0{draw(st.integers(0, 2))}Z",
            phase="Inqueue",
        )
        waiting = draw(st.sampled_from((None, "1m", "1h")))
        if waiting:
            group["metadata"].setdefault("annotations", {})["sla-waiting-time"] = waiting
        objects += [group, *pods]
    for obj in objects:
        view.apply("ADDED", obj)
    return view


@given(clusters())
def test_keys_say_what_the_comparison_says(view: View) -> None:
    session = open_session(view.snapshot(), CONFIG, CycleClock(1, 1_800_000_000.0), Carry())
    keyed = session.points.job_order.queue()
    assert isinstance(keyed, KeyedQueue)
    live = PriorityQueue(session.points.job_order.before, session.jobs.in_order)
    for job in session.jobs.in_order:
        keyed.push(job)
    assert [keyed.pop().key for _ in session.jobs.in_order] == [live.pop().key for _ in session.jobs.in_order]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans()), max_size=9), st.booleans())
def test_a_sorted_list_of_tasks_says_what_the_live_heap_says(pods: Any, numbered: bool) -> None:
    """Names that end in a number and names that do not; with both in one job there is no order but the heap's."""
    listed = [
        pod(
            f"{place}-w" + f"-{place % 4}" * (numbered and not bare),
            group="g",
            priority=priority,
            created=SECOND.format(at),
        )
        for place, (priority, at, bare) in enumerate(pods)
    ]
    view = View()
    for obj in (queue("q"), *gang("g", queue="q", pods=0, phase="Inqueue"), *listed):
        view.apply("ADDED", obj)
    session = open_session(view.snapshot(), CONFIG, CycleClock(1, 1_800_000_000.0), Carry())
    tasks = [task for job in session.jobs.in_order for task in job.tasks.values()]
    order = session.points.task_order
    in_order, live = order.queue(tasks), PriorityQueue(order.before, tasks)
    mixed = numbered and len({bare for _, _, bare in pods}) > 1
    assert isinstance(in_order, PriorityQueue if mixed else SortedQueue)
    assert [in_order.pop().key for _ in tasks] == [live.pop().key for _ in tasks]


def test_a_plugin_without_a_key_brings_the_live_heap_back() -> None:
    session = open_session(View().snapshot(), CONFIG, CycleClock(1, 0.0), Carry())
    assert isinstance(session.points.job_order.queue(), KeyedQueue)
    session.points.job_order.add("drf", lambda left, right: 0)
    assert isinstance(session.points.job_order.queue(), PriorityQueue)
