"""The story of a job as data."""

from __future__ import annotations

from typing import Any

from pumice.questions.adviser.pictures import GangLives, tries_of
from pumice.questions.measures.jobs import JobRow, Jobs
from pumice.questions.measures.lives import Lives
from pumice.storage.journal import Record, Stored
from tests.kit.jobs import gang
from tests.kit.recorded import BEGAN, api


def in_phase(group: dict[str, Any], phase: str) -> dict[str, Any]:
    return {**group, "status": {"phase": phase}}


def followed(records: list[Record], *listeners: Any) -> None:
    lives = Lives(listeners)
    for sequence, record in enumerate(records, 1):
        lives.follow(Stored(sequence, record.kind, record.payload, record.cause, record.at, b""))


def test_a_job_was_admitted_when_it_was_for_the_first_time() -> None:
    """A restart makes a new PodGroup, which waits again; the job's row in a report says the same."""
    group, _ = gang("g", pods=1)
    owner = {"kind": "Job", "metadata": {"namespace": "default", "name": "g"}, "spec": {"minAvailable": 1}}
    records = [
        api(0, owner, "ADDED"),
        api(0, in_phase(group, "Pending"), "ADDED"),
        api(10, in_phase(group, "Inqueue")),
        api(20, group, "DELETED"),
        api(21, in_phase(group, "Pending"), "ADDED"),
    ]
    for again in ([], [api(180, in_phase(group, "Inqueue"))]):
        story, rows = GangLives("default/g"), list[JobRow]()
        jobs = Jobs(rows.append)
        jobs.began = BEGAN
        followed([*records, *again], story, jobs)
        jobs.close()
        assert story.admitted == BEGAN + 10
        assert [row.admitted for row in rows] == [10]


def event(cycle: int, whose: str, said: str) -> dict[str, Any]:
    return {"at": float(cycle), "cycle": cycle, "kind": "api", "text": "", "object": whose, "said": said}


def test_answers_are_about_the_gang_once_and_about_pods_that_are_refused() -> None:
    ready, full = "tasks in gang are ready to be scheduled", "0/25 nodes are unavailable: 25 Insufficient cpu."
    told = [
        event(2, "Job d/g", "8 pending"),
        event(3, "Pod d/g-0", "on n0"),
        event(3, "Pod d/g-4", full),
        event(3, "Pod d/g-5", "Task g-5 with role spec w has already predicated failed, skip"),
        event(3, "Pod d/g-6", full),
        event(3, "PodGroup d/g", ready),
        event(4, "PodGroup d/g", ready),
        event(6, "Pod d/g-5", full),
        event(7, "Pod d/g-5", "being deleted"),
    ]
    found = [(each["cycle"], each["said"], each["pods"]) for each in tries_of(told)]
    assert found == [(3, full, ["d/g-4", "d/g-6"]), (3, ready, []), (6, full, ["d/g-5"])]
