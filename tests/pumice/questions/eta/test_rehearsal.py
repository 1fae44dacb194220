"""Workloads that are lived through to hold estimates against what came."""

from __future__ import annotations

import pytest

from pumice.core.messages.events import ConfigLoaded
from pumice.core.objects.metadata import Object
from pumice.errors import InputError
from pumice.questions.eta.estimate import FutureSampling
from pumice.questions.eta.score import Calibration, calibration_of, rehearsed, score, to_rehearse
from pumice.units import BEGAN
from tests.kit.jobs import job_task, vcjob
from tests.kit.nodes import nodes
from tests.kit.queues import queue

TOLD = ConfigLoaded("", "", "")


def workload(jobs: int, lasts: str = "60s") -> list[Object]:
    """One node; a job that fills it every 40 seconds, so each waits longer than the one before."""
    made = [nodes(1, cpu="4")[0], queue("root"), queue("default")]
    for number in range(jobs):
        job = vcjob(f"j{number:02}", job_task(replicas=1, cpu="3", duration=lasts))
        job["metadata"].setdefault("annotations", {})["pumice.dev/arrival"] = f"{40 * number}s"
        made.append(job)
    return made


def test_moments_know_nothing_of_what_comes_later() -> None:
    found = rehearsed(to_rehearse(workload(12), TOLD, None, 1.0), 3)
    assert [round(fork.now - BEGAN) for fork in found.moments] == [120, 240, 360]
    for fork in found.moments:
        came = {obj["metadata"]["name"] for obj in fork.objects if obj["kind"] == "Job"}
        assert came == {f"j{number:02}" for number in range(int(fork.now - BEGAN) // 40 + 1)}
        assert not fork.later
    starts = [found.book.started[f"default/j{number:02}"] - BEGAN for number in range(12)]
    assert starts == sorted(starts)
    assert starts[-1] == pytest.approx(11 * 60, abs=30)


def test_the_first_so_many_come_so_many_times_as_fast() -> None:
    fork = to_rehearse(workload(12), TOLD, 4, 2.0)
    assert [(after_s, obj["metadata"]["name"]) for after_s, obj in fork.later] == [
        (20.0 * number, f"j{number:02}") for number in range(4)
    ]
    assert {obj["kind"] for obj in fork.objects} == {"Node", "Queue"}


def test_more_moments_than_arrivals_are_refused() -> None:
    with pytest.raises(InputError, match="3 moments want 4 arrivals at least, there are 3"):
        rehearsed(to_rehearse(workload(3), TOLD, None, 1.0), 3)


@pytest.mark.slow
def test_scores_of_a_workload_come_out_again() -> None:
    def scores() -> Calibration:
        found = rehearsed(to_rehearse(workload(20), TOLD, None, 1.0), 3)
        return calibration_of(score(found.moments, found.book, FutureSampling(5, 3600.0, 3)))

    told = scores()
    assert told.known > 0
    assert told.known < told.asked  # before enough has ended nobody knows
    assert (told.coverage or 0.0) >= 0.7  # all run equally long, and nobody overtakes
    assert (told.said_error_s or 0.0) < 2.0
    assert scores() == told
