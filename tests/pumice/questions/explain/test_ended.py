"""A job that came to an end, or whose pods could not be made, has its cause named: by explain and by its story."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.cli.app import command_line
from pumice.questions.explain.advice.advise import Advice
from pumice.questions.explain.ended import ENDS, end_among, end_of
from pumice.questions.history.entries import StoryEntry
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import node
from tests.kit.queues import queue
from tests.pumice.cli.terminal import pumice
from tests.pumice.questions.explain.test_reasons import ran

LOST = "no PriorityClass with name lost was found"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that names a class that is not there, and one that is done."""
    done = vcjob("done", job_task(replicas=1, duration="1s"))
    objects = [node("n0"), vcjob("lost", job_task(replicas=2), priority_class="lost"), done]
    return ran(tmp_path_factory.mktemp("ended"), objects, time="virtual")


def test_a_missing_priority_class_is_the_cause(db: Path) -> None:
    said = pumice("explain", "--db", db, "job", "lost", "-o", "json")
    assert said.code == 0, said.err
    assert (said.json["state"], said.json["reason"]) == ("Terminated", "CreationRefused")
    assert LOST in said.json["message"]
    assert "2 of 2 fit with: create PriorityClass lost (value 0)" in said.json["unblock"]
    assert said.json["tried"]["remark"] == "tried as if it were submitted again"


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


def entry(state: str, reason: str = "", message: str = "") -> StoryEntry:
    found = StoryEntry(1, 0.0, "api", "")
    found.data = {"type": "MODIFIED", "object": "Job default/j", "state": state, "reason": reason, "message": message}
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


def given(folder: Path, *objects: Any) -> list[Any]:
    """The command that asks about a dump."""
    (folder / "all.yaml").write_text(yaml.safe_dump_all(objects), "utf-8")
    return ["explain", "-f", folder / "all.yaml", "-o", "json", "job"]


def test_pods_that_cannot_be_made_are_the_reason_in_manifests(tmp_path: Path) -> None:
    lost = vcjob("lost", job_task(replicas=2), priority_class="lost")
    said = pumice(*given(tmp_path, node("n0"), lost), "lost")
    assert said.code == 0, said.err
    assert (said.json["state"], said.json["reason"]) == ("Inqueue", "CreationRefused")
    assert said.json["message"].startswith(f"Pod lost-worker-0: {LOST}; ")
    assert "2 of 2 fit with: create PriorityClass lost (value 0)" in said.json["unblock"]
    steps = {each["action"]: each["stopped"] for each in said.json["job"]["steps"]}
    assert steps["allocate"] == "not valid (Not enough valid pods of each task for gang-scheduling)"


def test_a_missing_priority_class_of_a_pod_template_is_advised(tmp_path: Path) -> None:
    job = vcjob("j", job_task(replicas=2))
    job["spec"]["tasks"][0]["template"]["spec"]["priorityClassName"] = "lost"
    said = pumice(*given(tmp_path, node("n0"), job), "j")
    assert "2 of 2 fit with: create PriorityClass lost (value 0)" in said.json["unblock"]


@pytest.mark.parametrize("phase", ["Completed", "Aborted", "Terminated", "Failed"])
def test_a_job_that_has_ended_is_called_so_in_a_dump(phase: str, tmp_path: Path) -> None:
    """Of its PodGroup and its pods nothing may be left."""
    done = vcjob("done", job_task(replicas=1))
    done["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    done["status"] = {"state": {"phase": phase}, "succeeded": 1}
    said = pumice(*given(tmp_path, node("n0"), done), "done")
    assert said.code == 0, said.err
    assert (said.json["state"], said.json["message"]) == (phase, f"{ENDS[phase]} (1 succeeded)")
    assert said.json["unblock"] == []


def test_a_server_that_names_a_cause_is_believed() -> None:
    job = vcjob("j", job_task(replicas=1))
    job["status"] = {"state": {"phase": "Terminated", "reason": "CreationRefused", "message": LOST}}
    told = end_among("default/j", [node("n0"), job])
    assert told == {"state": "Terminated", "reason": "CreationRefused", "message": LOST}
    assert end_among("default/other", [job]) is None


def test_the_reason_is_shown_before_anything_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    def advise(*given: Any) -> Advice:
        shown.append(capfd.readouterr().out)
        return Advice(["something"])

    monkeypatch.setattr("pumice.questions.explain.advice.advise.advise", advise)
    command = given(tmp_path, queue("default"), node("n0", cpu="1"), *gang("g", pods=2))
    assert command_line(["explain", "-o", "table", *map(str, command[1:3]), "podgroup", "g"]) == 0
    assert "podgroup default/g: Pending" in shown[0]
    assert "its queue has no room for it" in shown[0]
    assert capfd.readouterr().out == "something\n"
