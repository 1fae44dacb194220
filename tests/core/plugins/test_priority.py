"""priority: orders, victims, starvation."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pumice.core.session.session import Session
from tests.core.plugins.world import configuration, evictable, job_of, open_world, task_of
from tests.kit import gang, node, pod, pod_group, priority_class, queue

CONFIG = configuration(["priority"])


def world() -> Session:
    return open_world(
        CONFIG,
        node("n", cpu="32"),
        queue("q"),
        priority_class("high", 100),
        priority_class("low", 1),
        gang("high", queue="q", pods=2, nodes=["n"], phase="Running", priority_class="high", min_member=1),
        gang("low", queue="q", pods=2, nodes=["n"] * 2, phase="Running", priority_class="low"),
        pod_group("mixed", queue="q", phase="Running"),
        *[pod(f"mixed-{p}", group="mixed", node="n" if p < 9 else None, priority=p) for p in (2, 5, 9)],
    )


def test_higher_priorities_first() -> None:
    session = world()
    high, low, mixed = (job_of(session, name) for name in ("high", "low", "mixed"))
    assert session.points.job_order(high, low) < 0 < session.points.job_order(low, high)
    assert session.points.job_order(low, mixed) < 0
    assert session.points.task_order(task_of(session, "mixed-9"), task_of(session, "mixed-2")) < 0
    assert session.points.task_order(task_of(session, "low-0"), task_of(session, "low-1")) == 0


def test_a_group_counts_as_its_most_important_task() -> None:
    session = world()
    (mixed,), (low,) = (session.sub_jobs(job_of(session, name)).values() for name in ("mixed", "low"))
    assert mixed.priority == 9
    assert session.points.sub_job_order(mixed, low) < 0


@pytest.mark.parametrize(
    ("preemptor", "victims"),
    [
        ("high-1", ["low-0", "low-1", "mixed-2", "mixed-5"]),
        ("low-0", ["mixed-2", "mixed-5"]),
        ("mixed-9", ["mixed-2", "mixed-5"]),  # within the job by the tasks' own priorities
        ("mixed-5", ["mixed-2"]),
    ],
)
def test_victims_are_strictly_less_important(preemptor: str, victims: list[str]) -> None:
    session = world()
    pods = ["high-0", "low-0", "low-1", "mixed-2", "mixed-5"]
    assert evictable(session, "Preemptable", task_of(session, preemptor), *pods) == victims


@pytest.mark.parametrize(("kind", "victims"), [("gangpreempt", ["mixed-2"]), ("gangreclaim", ["high-0", "mixed-2"])])
def test_gangs_ask_only_when_they_preempt(kind: str, victims: list[str]) -> None:
    session = world()
    context = SimpleNamespace(kind=kind, job=job_of(session, "low"))
    assert evictable(session, "UnifiedEvictable", context, "high-0", "mixed-2") == victims


def test_a_job_starves_while_a_task_has_no_place() -> None:
    session = world()
    starves = session.points.job_starving
    assert starves(job_of(session, "high"))
    assert not starves(job_of(session, "low"))
    assert session.statement().pipeline(task_of(session, "high-1"), 0, evicted=False)
    assert not starves(job_of(session, "high"))


def test_a_failed_task_counts_as_one_without_a_place() -> None:
    session = open_world(
        CONFIG, node("n"), queue("q"), pod_group("j", queue="q"), pod("j-0", group="j", phase="Failed")
    )
    assert session.points.job_starving(job_of(session, "j"))
