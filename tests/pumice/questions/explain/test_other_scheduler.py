"""What is told of pods that Kubernetes' own scheduler places, out of a journal of both schedulers."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.pumice.cli.terminal import pumice

MINE = "default-scheduler"


def run(folder: Path, *flags: str) -> Path:
    objects = [
        node("n0"),
        node("n1", cpu="2"),
        pod("small", scheduler=MINE, cpu="1", duration="0"),
        pod("huge", scheduler=MINE, cpu="20"),
        *gang("g", pods=1, cpu="1", duration="0"),
    ]
    (folder / "all.yaml").write_text(yaml.safe_dump_all(objects), "utf-8")
    said = pumice("run", "-f", folder / "all.yaml", "--db", folder / "j.db", "--until", "idle", *flags)
    assert said.code == 0, said.err
    assert ("no scheduler of that name runs here" in said.err) is ("--no-default-scheduler" in flags)
    return folder / "j.db"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("both"))


def test_a_placed_pod_is_explained_by_the_cycle_that_placed_it(db: Path) -> None:
    told = pumice("explain", "pod", "small", "--db", db, "-o", "json").json
    assert (told["state"], told["reason"]) == ("Bound", "Placed")
    assert "n0" in told["message"]
    assert "differs" not in told or not told["differs"]
    again = pumice("explain", "pod", "small", "--db", db, "--cycle", str(told["cycle"]), "-o", "json").json
    assert again["message"] == told["message"]


def test_a_waiting_pod_has_the_words_of_its_scheduler(db: Path) -> None:
    told = pumice("explain", "pod", "huge", "--db", db, "-o", "json").json
    assert told["state"] == "Pending"
    assert told["reason"] == "Unschedulable"
    assert told["message"].startswith(
        "default/huge is default-scheduler's: 0/2 nodes are available: 2 Insufficient cpu."
    )


def test_volcanos_pods_are_explained_as_ever(db: Path) -> None:
    assert pumice("explain", "pod", "g-0", "--db", db, "-o", "json").json["reason"] == "Placed"


def test_a_journal_names_the_scheduler_and_is_replayed(db: Path) -> None:
    assert pumice("replay", db, "--verify", "-o", "json").code == 0
    placed = int(pumice("explain", "pod", "small", "--db", db, "-o", "json").json["cycle"])
    refused = pumice("decide", "--db", db, "--at", str(placed))
    assert refused.code == 2
    assert f"cycle {placed} is default-scheduler's; the one of Volcano's before it is {placed - 1}" in refused.err


def test_others_may_have_them(tmp_path: Path) -> None:
    left = run(tmp_path, "--no-default-scheduler")
    told = pumice("explain", "pod", "small", "--db", left, "-o", "json").json
    assert (told["state"], told["reason"]) == ("Pending", "Waiting")


@pytest.mark.parametrize("kind", ["job", "pod"])
def test_a_job_whose_pods_nobody_here_places_is_told_so(tmp_path: Path, kind: str) -> None:
    job = vcjob("j", job_task(replicas=2, cpu="1"), min_available=2, scheduler="other")
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([node("n0"), job]), "utf-8")
    name = {"job": "j", "pod": "j-worker-0"}[kind]
    told = pumice("explain", kind, name, "-f", tmp_path / "all.yaml", "-o", "json").json
    said = "no scheduler named 'other' runs here, for which 2 of its pods ask"
    assert (told["state"], told["reason"]) == ("Pending", "NoScheduler")
    assert said in told["message"]
    assert {each["stopped"] for each in told["job"]["steps"]} == {"", said}
    assert told["unblock"] == ["2 of 2 fit with: schedulerName volcano instead of other"]
