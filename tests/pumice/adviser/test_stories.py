"""The story of a job as data."""

from __future__ import annotations

from typing import Any

from pumice.adviser.stories import GangLives
from pumice.measures.jobs import JobRow, Jobs
from pumice.measures.lives import Lives
from storage.journal import Record, Stored
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
