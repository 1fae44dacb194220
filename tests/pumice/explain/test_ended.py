"""A job that came to an end, or whose pods could not be made, has its cause named: by explain and by its story."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.explain.ended import end_of
from pumice.history.entries import StoryEntry
from tests.kit.jobs import job_task, vcjob
from tests.kit.nodes import node
from tests.pumice.cli.terminal import pumice
from tests.pumice.explain.test_reasons import ran

LOST = "no PriorityClass with name lost was found"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that names a class that is not there, and one that is done."""
    done = vcjob("done", job_task(replicas=1, duration="1s"))
    objects = [node("n0"), vcjob("lost", job_task(replicas=2), priority_class="lost"), done]
    return ran(tmp_path_factory.mktemp("ended"), objects)


def test_a_missing_priority_class_is_the_cause(db: Path) -> None:
    said = pumice("explain", "--db", db, "job", "lost", "-o", "json")
    assert said.code == 0, said.err
    assert (said.json["state"], said.json["reason"]) == ("Terminated", "CreationRefused")
    assert LOST in said.json["message"]


def test_the_story_names_it_too(db: Path) -> None:
    told = pumice("journal", db, "--about", "default/lost", "-o", "json").json
    assert LOST in told["ended"]["message"]
    table = pumice("journal", db, "--about", "default/lost", "-o", "table").out
    assert f"default/lost is Terminated: {told['ended']['message']}" in table


def test_a_job_that_is_done_is_called_so(db: Path) -> None:
    said = pumice("explain", "--db", db, "job", "done", "-o", "json").json
    assert said["state"] == "Completed"
    assert said["message"].startswith("as many of its tasks as it needs have succeeded (1 succeeded); in cycle ")
    assert said["unblock"] == []


def entry(state: str, **more: str) -> StoryEntry:
    found = StoryEntry(1, 0.0, "api", "")
    found.data = {"type": "MODIFIED", "object": "Job default/j", "state": state, **more}
    return found


@pytest.mark.parametrize(
    ("story", "sentence"),
    [
        (
            [entry("Aborted, 2 failed")],
            "it was aborted, by a command or by one of its policies; it can be resumed (2 failed)",
        ),
        ([entry("Pending, 1 pending, no", reason="CreationRefused", message="no")], "no"),
        ([entry("Aborted"), entry("Running, 1 running")], None),
        ([], None),
    ],
)
def test_the_last_state_counts(story: list[StoryEntry], sentence: str | None) -> None:
    found = end_of("default/j", story)
    assert (found and found["message"]) == sentence


def test_a_job_that_is_gone_has_no_state() -> None:
    gone = entry("")
    gone.data["type"] = "DELETED"
    assert end_of("default/j", [entry("Aborted"), gone]) is None
