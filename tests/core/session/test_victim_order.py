"""Which of several victims goes first."""

from __future__ import annotations

from typing import Any

from core.session.session import Session
from core.session.victim_order import victim_queue
from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import gang, node, pod, priority_class, queue

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
