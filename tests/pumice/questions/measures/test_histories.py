"""Measures of small random histories against a second computation, job by job and second by second."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.questions.measures.tables import points, queue_resources
from tests.kit import gang, node, queue
from tests.pumice.questions.measures.told import BEGAN, Told, on

if TYPE_CHECKING:
    from pumice.questions.measures.jobs import JobRow
    from pumice.questions.measures.measures import Measures

END = 60
CPUS = 8
WEIGHTS = {"a": 1, "b": 3}


@dataclass(frozen=True)
class Past:
    """A job of `pods` pods, each with so many CPUs. Seconds from one step to the next; None: it never came to it."""

    queue: str
    pods: int
    cpu: int
    submitted: int
    admission: int | None
    binding: int | None
    starting: int | None
    running: int | None
    fails: bool

    @property
    def times(self) -> list[int | None]:
        """Admitted, bound, started, ended: None from the first step on that it never came to."""
        found, at = list[int | None](), self.submitted
        for seconds in (self.admission, self.binding, self.starting, self.running):
            found.append(None if seconds is None or (found and found[-1] is None) else at + seconds)
            at = found[-1] or at
        return found


def step(most: int) -> st.SearchStrategy[int | None]:
    return st.integers(0, most) | st.just(None)


PASTS = st.builds(
    Past,
    st.sampled_from(["a", "b"]),
    st.integers(1, 2),
    st.integers(1, 3),
    st.integers(0, 20),
    step(10),
    step(10),
    step(5),
    step(15),
    st.booleans(),
)


def told(jobs: list[Past]) -> tuple[Measures, list[JobRow]]:
    """The measures of these jobs on two nodes, which come at 0."""
    changes: list[tuple[int, int, dict[str, Any], str]] = []
    for number, job in enumerate(jobs):
        group, *pods = gang(f"g{number}", pods=job.pods, queue=job.queue, cpu=str(job.cpu))
        admitted, bound, started, ended = job.times
        changes += [(job.submitted, 0, each, "ADDED") for each in (group, *pods)]
        if admitted is not None:
            changes.append((admitted, 1, {**group, "status": {"phase": "Inqueue"}}, "MODIFIED"))
        last = "Failed" if job.fails else "Succeeded"
        for rank, (at, phase) in enumerate(((bound, "Pending"), (started, "Running"), (ended, last)), start=2):
            changes += [(at, rank, on(each, "n0", phase), "MODIFIED") for each in pods if at is not None]
    follows = Told()
    for name in ("n0", "n1"):
        follows(0, node(name, cpu=str(CPUS)), "ADDED")
    for name, weight in WEIGHTS.items():
        follows(0, queue(name, weight=weight), "ADDED")
    for at, _, obj, event in sorted(changes, key=lambda change: change[:2]):
        follows(at, obj, event)
    found = follows.end(END)
    return found, sorted(follows.rows, key=lambda row: int(row.job.rpartition("g")[2]))


def slowdown(job: Past) -> float | None:
    _, _, started, ended = job.times
    if started is None or ended is None:
        return None
    return max(1.0, (ended - job.submitted) / max(ended - started, 10))


def waited(job: Past) -> int:
    """Until it started, or until the end."""
    return (END if (started := job.times[2]) is None else started) - job.submitted


def lasted(job: Past, since: int) -> int:
    """Seconds from a moment until it ended, or until the end."""
    ended = job.times[3]
    return (END if ended is None else ended) - since


def held(jobs: list[Past]) -> int:
    """Second by second: cores of bound pods."""
    total = 0
    for second in range(END):
        for job in jobs:
            bound, ended = job.times[1], job.times[3]
            if bound is not None and bound <= second and (ended is None or second < ended):
                total += job.pods * job.cpu
    return total


@given(st.lists(PASTS, min_size=1, max_size=6))
def test_rows_of_jobs_are_what_happened_to_each(jobs: list[Past]) -> None:
    _, rows = told(jobs)
    assert len(rows) == len(jobs)
    for job, row in zip(jobs, rows, strict=True):
        admitted, bound, started, ended = job.times
        assert (row.queue, row.pods, row.attempts, row.cpu) == (job.queue, job.pods, job.pods, job.pods * job.cpu)
        assert (row.submitted, row.admitted, row.first_bound, row.last_bound) == (job.submitted, admitted, bound, bound)
        assert (row.started, row.ended) == (started, ended)
        assert row.wait_s == (None if started is None else started - job.submitted)
        if row.wait_s is not None:
            assert (row.admission_s or 0.0) + (row.scheduling_s or 0.0) == row.wait_s
        assert row.bounded_slowdown == (None if (expected := slowdown(job)) is None else round(expected, 4))
        in_vain = job.pods * (ended - started) if job.fails and started is not None and ended is not None else 0
        assert (row.lost_pod_s, row.lost_cpu_s) == (in_vain, in_vain * job.cpu)


@given(st.lists(PASTS, min_size=1, max_size=6))
def test_waits_and_slowdowns_are_those_of_the_jobs(jobs: list[Past]) -> None:
    found, _ = told(jobs)
    assert [row.queue for row in found.queues] == sorted({job.queue for job in jobs})
    for row in [*found.queues, None]:
        of = [job for job in jobs if row is None or job.queue == row.queue]
        waits, slow = [waited(job) for job in of], [each for job in of if (each := slowdown(job)) is not None]
        got: dict[str, Any] = dict(found.summary) if row is None else vars(row)
        assert got["mean_wait_s"] == pytest.approx(fmean(waits), abs=1e-3)
        assert got["median_wait_s"] == pytest.approx(float(np.percentile(waits, 50)), abs=1e-3)
        assert got["p95_wait_s"] == pytest.approx(float(np.percentile(waits, 95)), abs=1e-3)
        assert got["mean_bounded_slowdown"] == (pytest.approx(fmean(slow), abs=1e-3) if slow else None)
    slow = [1 / each for job in jobs if (each := slowdown(job)) is not None]
    fair = sum(slow) ** 2 / (len(slow) * sum(each**2 for each in slow)) if slow else None
    assert found.summary["jain_of_jobs"] == (None if fair is None else pytest.approx(fair, abs=1e-3))
    stages = (found.summary["mean_admission_s"] or 0.0) + (found.summary["mean_scheduling_s"] or 0.0)
    assert stages == pytest.approx(found.summary["mean_wait_s"], abs=2e-3)
    ends = [ended for job in jobs if (ended := job.times[3]) is not None]
    first = min(job.submitted for job in jobs)
    assert found.summary["makespan_s"] == (max(ends) - first if ends else None)


@given(st.lists(PASTS, min_size=1, max_size=6))
def test_counts_of_queues_add_up_to_those_of_all(jobs: list[Past]) -> None:
    found, rows = told(jobs)
    summary: dict[str, Any] = dict(found.summary)
    for name in ("jobs", "pods", "ended", "unstarted", "evictions", "killed", "restarts", "lost_cpu_s"):
        assert sum(getattr(row, name) for row in found.queues) == summary[name]
    for row in found.queues:
        of = [job for job in jobs if job.queue == row.queue]
        assert (row.jobs, row.pods, row.weight) == (len(of), sum(job.pods for job in of), WEIGHTS[row.queue])
        assert row.unstarted == sum(job.times[2] is None for job in of)
        assert row.ended == sum(job.times[3] is not None for job in of)
        assert row.lost_cpu_s == sum(each.lost_cpu_s for each in rows if each.queue == row.queue)


@given(st.lists(PASTS, min_size=1, max_size=6))
def test_amounts_over_time_are_their_integrals(jobs: list[Past]) -> None:
    found, _ = told(jobs)
    first, cpu = min(job.submitted for job in jobs), found.summary["resources"]["cpu"]
    capacity = 2 * CPUS * (END - first)
    assert (cpu["capacity_s"], cpu["held_s"]) == (capacity, held(jobs))
    assert cpu["requested_s"] == sum(job.pods * job.cpu * lasted(job, job.submitted) for job in jobs)
    assert cpu["utilisation"] == pytest.approx(held(jobs) / capacity, abs=1e-4)
    for row in found.queues:
        of = [job for job in jobs if job.queue == row.queue]
        asked = sum(job.pods * lasted(job, job.submitted) for job in of)
        assert ("cpu" in row.resources) is (asked > 0)
        if asked:
            assert row.resources["cpu"]["held_s"] == held(of)
            assert row.resources["cpu"]["share"] == pytest.approx(held(of) / capacity, abs=1e-4)
            assert row.resources["pods"]["requested_s"] == asked
    # each stretch is one second
    assert found.starts_s == list(range(END))
    series = {(each.what, each.queue): each.values for each in found.series if each.resource == "cpu"}
    assert sum(series["held", ""]) == pytest.approx(held(jobs))
    for row in found.queues:
        if ("held", row.queue) in series:
            assert sum(series["held", row.queue]) == pytest.approx(
                held([job for job in jobs if job.queue == row.queue])
            )
    parts = [values for (what, name), values in series.items() if what == "held" and name]
    assert series["held", ""] == [sum(values) for values in zip(*parts, strict=True)] or not parts
    assert set(series["capacity", ""]) == {2.0 * CPUS}


@given(st.lists(PASTS, min_size=1, max_size=4))
def test_fragmentation_is_the_part_of_free_cpus_beside_others(jobs: list[Past]) -> None:
    found, _ = told(jobs)
    series = next(each for each in found.series if (each.what, each.resource) == ("fragmentation", "cpu"))
    for second, value in enumerate(series.values):
        used = 0
        for job in jobs:
            bound, ended = job.times[1], job.times[3]
            if bound is not None and bound <= second and (ended is None or second < ended):
                used += job.pods * job.cpu
        free = 2 * CPUS - used  # all are on one node; the other is idle
        torn = max(0, CPUS - used) if used else 0
        assert value == pytest.approx(torn / free if free > 0 else 0.0)


@given(st.lists(PASTS, min_size=1, max_size=3))
def test_tables_have_a_row_for_each_resource_and_point(jobs: list[Past]) -> None:
    found, _ = told(jobs)
    rows = list(queue_resources(found))
    assert [(row.queue, row.resource) for row in rows] == [
        (q.queue, name) for q in found.queues for name in q.resources
    ]
    for row in rows:
        (of,) = (each for each in found.queues if each.queue == row.queue)
        amounts = of.resources[row.resource]
        assert amounts == {name: getattr(row, name) for name in amounts}
        assert (row.jobs, row.mean_wait_s, row.weight) == (of.jobs, of.mean_wait_s, of.weight)
    listed = list(points(found))
    assert len(listed) == len(found.series) * END
    assert [point.value for point in listed[:END]] == found.series[0].values
    assert [point.start_s for point in listed[:END]] == found.starts_s


def test_history_without_jobs_has_no_figures() -> None:
    follows = Told()
    follows(0, node("n0"), "ADDED")
    found = follows.end(5)
    assert (found.queues, found.began, found.horizon_s) == ([], BEGAN, 5.0)
    nothing = ("makespan_s", "mean_wait_s", "median_wait_s", "p95_wait_s", "mean_bounded_slowdown", "jain_of_jobs")
    summary: dict[str, Any] = dict(found.summary)
    assert {summary[name] for name in (*nothing, "jain_of_queues", "mean_admission_s")} == {None}
    assert (summary["jobs"], summary["pods"], summary["resources"]["cpu"]["utilisation"]) == (0, 0, 0.0)
