"""Which of several victims goes first."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.session.session import Session
from pumice.core.session.victim_order import removal_order, victim_queue
from tests.core.actions.crowds import TIERS, crowds
from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import gang, node, pod, pod_group, priority_class, queue

CONFIG = configuration(["priority"])


def in_order(session: Session, preemptor: str, *victims: str) -> list[str]:
    waiting = victim_queue(session, [task_of(session, name) for name in victims], task_of(session, preemptor))
    return [waiting.pop().name for _ in range(len(waiting))]


def world(*parts: Any) -> Session:
    return open_world(
        CONFIG,
        node("n", cpu="32"),
        queue("q"),
        queue("p", created="2026-01-02T00:00:00Z"),
        priority_class("high", 100),
        priority_class("low", 1),
        gang("high", queue="q", pods=2, nodes=["n"] * 2, phase="Running", priority_class="high"),
        gang("low", queue="q", pods=2, nodes=["n"] * 2, phase="Running", priority_class="low"),
        gang("other", queue="p", pods=1, nodes=["n"], phase="Running", priority_class="high"),
        gang("new", queue="q", pods=1),
        *parts,
    )


def test_the_less_important_job_first_and_in_it_the_later_task() -> None:
    assert in_order(world(), "new-0", "high-0", "low-0", "high-1", "low-1") == ["low-1", "low-0", "high-1", "high-0"]


def test_tasks_of_one_job_by_their_own_priorities() -> None:
    mixed = gang("mixed", queue="q", pods=0, phase="Running")
    members = [pod(f"mixed-{p}", group="mixed", node="n", priority=p) for p in (5, 1, 9)]
    session = world(mixed, members)
    assert in_order(session, "new-0", "mixed-5", "mixed-1", "mixed-9") == ["mixed-1", "mixed-5", "mixed-9"]


def test_the_queue_that_would_go_last_first() -> None:
    session = world()
    assert in_order(session, "new-0", "low-0", "other-0") == ["other-0", "low-0"]  # p was created later


def test_a_plugin_may_say_which_queue_is_robbed_first() -> None:
    session = world()
    asked: list[str] = []

    def q_first(left: Any, right: Any, preemptor: Any) -> int:
        asked.append(preemptor.name)
        return int(right.name == "q") - int(left.name == "q")

    session.points.victim_queue_order.add("priority", q_first)
    assert in_order(session, "new-0", "other-0", "low-0") == ["low-0", "other-0"]
    assert set(asked) == {"q"}


def test_tasks_whose_job_has_gone_first() -> None:
    session = world(pod("orphan-0", group="gone", node="n"), pod("stray-0", group="lost", node="n"))
    found = in_order(session, "new-0", "low-0", "orphan-0", "stray-0")
    assert found == ["stray-0", "orphan-0", "low-0"]


def test_without_the_preemptors_job_queues_do_not_count() -> None:
    session = world(pod("orphan-0", group="gone"))
    assert in_order(session, "orphan-0", "other-0", "low-0") == ["low-0", "other-0"]


ORDERS = (TIERS, (["gang"], ["drf", "tdm"]), (["priority"],), (["gang"],))


def in_heaps(session: Session) -> list[list[str]]:
    """Who would go in which order, node by node."""
    waits = next(task for job in session.jobs.in_order for task in job.tasks.values() if not task.node_name)
    rows = range(session.nodes.count)
    heaps = [victim_queue(session, session.nodes.tasks_on(row), waits) for row in rows]
    return [[heap.pop().key for _ in range(len(heap))] for heap in heaps]


def sorted_in_one_pass(session: Session) -> list[list[str]] | None:
    batch = session.residents.on(range(session.nodes.count))
    order = removal_order(session.points, batch)
    return None if order is None else [[task.key for task in tasks] for tasks in batch.only(order).by_node()]


@given(crowds(), st.sampled_from(ORDERS), st.sampled_from(["", "all", "some"]), st.integers(1, 3))
def test_one_sort_gives_what_a_heap_gives_on_each_node(objects: Any, tiers: Any, end: str, levels: int) -> None:
    """Names that end in a number, or not; where only some do, there is no order that a sort could give."""
    for place, obj in enumerate([each for each in objects if each["kind"] == "Pod"]):
        obj["spec"]["priority"] = place % levels
        if end == "all" or (end and place % 2):
            obj["metadata"]["name"] += f"-{place % 3}"
    session = open_world(configuration(*tiers), objects)
    found = sorted_in_one_pass(session)
    assert found is None or found == in_heaps(session)


@pytest.mark.parametrize(
    ("names", "uids", "found"),
    [
        (("a-x-2", "a-x-1"), ("one", "two"), ["default/a-x-2", "default/a-x-1"]),
        (("a-x", "b-x"), ("one", "two"), ["default/b-x", "default/a-x"]),
        (("a-x-1", "a-x"), ("one", "two"), None),  # one has no number
        (("a-x", "b-x"), ("alike-1", "alike-2"), ["default/b-x", "default/a-x"]),
        (("a-x", "b-x"), ("too-alike-1", "too-alike-2"), None),  # seven bytes of a uid are compared
        (("a-x-1", "b-x-2"), ("too-alike-1", "too-alike-2"), ["default/b-x-2", "default/a-x-1"]),
    ],
)
def test_what_numbers_cannot_tell_is_left_to_the_heap(names: Any, uids: Any, found: Any) -> None:
    pods = [pod(name, group="low", node="n", uid=uid) for name, uid in zip(names, uids, strict=True)]
    low = pod_group("low", queue="q", phase="Running")
    session = open_world(CONFIG, node("n"), queue("q"), low, pods, gang("new", queue="q", pods=1))
    assert sorted_in_one_pass(session) == (None if found is None else [found])
    assert found in (None, in_heaps(session)[0])


def alike(*_: Any) -> int:
    return 0


def test_a_plugin_that_only_compares_has_no_numbers() -> None:
    for order in ("job_order", "task_order"):
        session = world()
        getattr(session.points, order).add("priority", alike)
        assert sorted_in_one_pass(session) is None
