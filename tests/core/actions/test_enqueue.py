"""enqueue: whose turn it is, who is asked, and what admission does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.cycle import Carry, CycleClock, close_session, open_session, run_action
from pumice.core.life.pod_group import LABELS
from pumice.core.objects.metadata import Object
from pumice.core.objects.queue import Queue
from pumice.core.session.points.votes import Vote
from pumice.core.session.session import Session
from pumice.core.session.trail.trail import NULL_TRAIL, NullTrail, Trail
from pumice.core.state.jobs import Job
from pumice.core.state.view import View
from tests.core.plugins.world import configuration, open_world, view_of
from tests.kit import node, pod_group, queue

MINIMUM = {"cpu": "2"}


def waits(name: str, where: str = "q", cpu: str | None = "2", **more: Any) -> Object:
    return pod_group(name, queue=where, min_resources={"cpu": cpu} if cpu else None, **more)


def enqueued(session: Session) -> list[str]:
    """Runs the action; who was admitted, in that order."""
    told: list[str] = []

    def note(job: Job) -> None:
        told.append(job.name)

    session.points.job_enqueued.add("conformance", note)
    run_action(session, "enqueue")
    return told


def phases(session: Session) -> dict[str, str]:
    return {job.name: LABELS[session.jobs.phase[job.row]] for job in session.jobs.in_order}


def test_only_pending_jobs_are_admitted() -> None:
    session = open_world(
        configuration(["conformance"]),
        node("n"),
        queue("q"),
        *(waits(phase.lower() or "none", phase=phase) for phase in LABELS),
        waits("lost", where="gone"),
    )
    assert enqueued(session) == ["none", "pending"]
    expected = {label.lower() or "none": label for label in LABELS}
    assert phases(session) == {**expected, "none": "Inqueue", "pending": "Inqueue"}


def test_queues_take_turns_job_by_job() -> None:
    session = open_world(
        configuration(["priority", "conformance"]),
        node("n"),
        queue("q"),
        queue("p"),
        *(waits(f"q{i}") for i in range(3)),
        *(waits(f"p{i}", where="p") for i in range(2)),
    )
    # Equal queues go by creation, then name, and after each job a queue is put back: p is always first while it has
    # jobs.
    assert enqueued(session) == ["p0", "p1", "q0", "q1", "q2"]


def test_turns_follow_shares_as_they_change() -> None:
    session = open_world(
        configuration(["conformance"]),
        node("n"),
        queue("q"),
        queue("p"),
        *(waits(f"q{i}") for i in range(2)),
        *(waits(f"p{i}", where="p") for i in range(2)),
    )
    turns = {"p": 0, "q": 0}

    def fewer_turns(left: Queue, right: Queue) -> int:
        return turns[left.name] - turns[right.name]

    def note(job: Job) -> Vote:
        turns[job.pod_group.queue] += 1
        return Vote.PERMIT

    session.points.job_enqueueable.add("conformance", note)
    session.points.queue_order.add("conformance", fewer_turns)
    assert enqueued(session) == ["p0", "q0", "p1", "q1"]


def test_a_rejected_job_does_not_hold_up_the_next() -> None:
    session = open_world(
        configuration(["overcommit", "conformance"]), node("n", cpu="4"), queue("q"), waits("a", cpu="5"), waits("b")
    )
    assert enqueued(session) == ["b"]
    first = next(job.row for job in session.jobs.in_order if job.name == "a")
    assert session.fit.admission.not_admitted == {first: "overcommit"}


def fifo(name: str) -> Object:
    made = queue(name)
    return {**made, "spec": {**made["spec"], "dequeueStrategy": "fifo"}}


@pytest.mark.parametrize(
    ("strict", "fix", "admitted"),
    [
        (True, ["dequeue-strategy"], ["other"]),
        (True, [], ["other", "b"]),
        (False, ["dequeue-strategy"], ["other", "b"]),
    ],
)
def test_strict_queues_wait_for_their_first_job_when_mended(strict: bool, fix: list[str], admitted: list[str]) -> None:
    session = open_world(
        configuration(["overcommit", "conformance"], fix=fix),
        node("n", cpu="4"),
        fifo("q") if strict else queue("q"),
        queue("p"),
        waits("a", cpu="5"),
        waits("b", cpu="1"),
        waits("other", where="p", cpu="1"),
    )
    assert enqueued(session) == admitted


def test_without_minimum_nobody_is_asked_not_even_whether_the_queue_is_open() -> None:
    session = open_world(
        configuration(["proportion", "conformance"]),
        node("n"),
        queue("q", state="Closed"),
        waits("free", cpu=None),
        waits("asked"),
    )
    assert enqueued(session) == ["free"]


@given(st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["q", "p"])), max_size=8))
def test_overcommit_never_admits_more_than_its_room(wishes: list[tuple[int, str]]) -> None:
    session = open_world(
        configuration(["overcommit", "conformance"]),
        node("n", cpu="10"),
        queue("q"),
        queue("p"),
        *(waits(f"j{i}", where=where, cpu=str(cpu)) for i, (cpu, where) in enumerate(wishes)),
    )
    admitted = {int(name[1:]) for name in enqueued(session)}
    total = sum(wishes[i][0] for i in admitted)
    assert total <= 12
    assert all(total + cpu > 12 for i, (cpu, _) in enumerate(wishes) if i not in admitted)


WISHES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.sampled_from("qpr"), st.integers(0, 2)), min_size=1, max_size=12
)


@settings(deadline=None, max_examples=60)
@given(WISHES, st.sampled_from([["overcommit", "proportion"], ["proportion", "overcommit"], ["proportion"]]))
def test_enqueue_in_columns_and_one_by_one_agree(wishes: list[tuple[int, int, str, int]], plugins: list[str]) -> None:
    def decided(trail: NullTrail) -> tuple[dict[str, str], dict[int, str], dict[int, str], set[int]]:
        session = open_world(
            configuration(["priority", "drf", *plugins]),
            node("n", cpu="6", memory="12Gi"),
            queue("q"),
            {**queue("p"), "spec": {"weight": 2, "capability": {"cpu": "3", "memory": "5Gi"}}},
            queue("r", state="Closed"),
            *(
                pod_group(f"j{i}", queue=where, created=f"2025-12-01T00:00:0{created}Z", min_resources=minimum(cpu, gi))
                for i, (cpu, gi, where, created) in enumerate(wishes)
            ),
            trail=trail,
        )
        run_action(session, "enqueue")
        fit = session.fit.admission
        return phases(session), fit.not_admitted, fit.remarks, set(fit.too_little)

    assert decided(NULL_TRAIL) == decided(Trail(brief=True))


def minimum(cpu: int, gi: int) -> Object | None:
    found = {name: text for name, amount, text in (("cpu", cpu, f"{cpu}"), ("memory", gi, f"{gi}Gi")) if amount}
    return found or None


TOO_MUCH = {"cpu": "30", "memory": "1Gi"}, {"cpu": "1", "memory": "99Gi"}, {"cpu": "30", "memory": "99Gi"}
REFUSED = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("qp"), st.sampled_from(TOO_MUCH)), max_size=12)


@settings(deadline=None, max_examples=30)
@given(REFUSED)
def test_reasons_are_those_of_a_first_session_whatever_changed(wishes: list[tuple[int, str, dict[str, str]]]) -> None:
    """From session to session of one view it is kept which jobs ask for the same."""
    config = configuration(["priority", "drf", "overcommit", "proportion"])

    def told(view: View) -> list[tuple[str, str]]:
        session = open_session(view.snapshot(kept=True, checks=True), config, CycleClock(1, 0.0), Carry())
        run_action(session, "enqueue")
        return [(event.name, event.message) for event in close_session(session).events]

    there = [node("n", cpu="20", memory="64Gi"), queue("q", capability={"memory": "512Mi"}), queue("p")]
    view, jobs = view_of(*there), dict[int, Object]()
    for number, where, minimum in wishes:
        jobs[number] = pod_group(f"j{number}", queue=where, min_resources=minimum)
        view.apply("ADDED", jobs[number])
        assert told(view) == told(view) == told(view_of(*there, *jobs.values()))
        assert len(told(view)) == len(jobs)
