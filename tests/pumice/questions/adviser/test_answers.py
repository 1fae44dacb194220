"""Answers out of a journal: as objects of the group, or refused with a code and a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.actors.gateway.advice import AdviserAnswer, AdviserQuestion
from pumice.questions.adviser.answers import answer
from pumice.questions.replay import verify
from pumice.questions.replay.replayer import Replayer, start
from pumice.storage.journal import Journal
from tests.kit.jobs import gang
from tests.kit.nodes import nodes
from tests.kit.queues import queue
from tests.pumice.cli.terminal import pumice


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run in which default/a was placed and default/g waits; default/z comes later and waits as well."""
    folder = tmp_path_factory.mktemp("run")
    later = gang("g", pods=3, cpu="4", queue="q1", created="2027-01-01T00:00:00Z")
    latest = gang("z", pods=3, cpu="4", queue="q1", created="2028-01-01T00:00:00Z")
    for each in latest:
        each["metadata"].setdefault("annotations", {})["pumice.dev/arrival"] = "2s"
    objects = [*nodes(2, cpu="4"), queue("q1"), *gang("a", pods=2, cpu="3", queue="q1", duration="0"), *later, *latest]
    (folder / "c.yaml").write_text(yaml.safe_dump_all(objects))
    said = pumice("run", "-f", folder / "c.yaml", "--db", folder / "j.db", "--time", "virtual", "--until", "20s")
    assert said.code == 0
    return str(folder / "j.db")


def asked(
    db: str, resource: str, name: str = "", namespace: str = "", **query: str
) -> tuple[AdviserAnswer, dict[str, Any]]:
    found = answer(db, None, AdviserQuestion(resource, namespace, name, tuple(query.items())))
    return found, json.loads(found.body) if found.body else {}


def test_who_waits(db: str) -> None:
    found, body = asked(db, "standings")
    assert found.code == 200
    assert (body["kind"], body["apiVersion"]) == ("Standing", "pumice.dev/v1")
    assert [(job["job"], job["class"]) for job in body["waiting"]] == [
        ("default/g", "NoCapacity"), ("default/z", "NoCapacity"),
    ]  # fmt: skip
    assert asked(db, "standings", "q1")[1]["queues"].keys() == {"q1"}
    assert asked(db, "standings")[0] == found
    assert [job["job"] for job in asked(db, "standings", cycle="1")[1]["waiting"]] == ["default/g"]
    counted = asked(db, "waitclasses")[1]
    assert counted["classes"]["NoCapacity"] == {"q1": 2}
    assert sum(each["jobs"] for each in counted["counts"] if each["queue"] == "q1") == 2


def test_a_cycle_and_its_trail(db: str) -> None:
    _, newest = asked(db, "cycles", "newest")
    placing = next(body for cycle in range(1, newest["cycle"]) if (body := asked(db, "cycles", str(cycle))[1])["binds"])
    assert {bind["name"] for bind in placing["binds"]} == {"a-0", "a-1"}
    assert next(turn["job"] for turn in placing["turns"] if turn["action"] == "allocate") == "default/a"
    committed = {"action": "allocate", "who": "default/a", "ending": "committed", "minimum": 2}
    assert placing["endings"]["default/a"][-1] == committed
    took = placing["took"]
    assert [*took["actions"]] == placing["actions"]
    assert sum((*took["actions"].values(), *took["plugins"].values())) <= took["total_s"]
    opened = {name for tier in placing["plugins"] for name in tier}
    assert {f"OnSessionOpen {name}" for name in opened} <= took["plugins"].keys()
    _, looked = asked(db, "cycles", str(placing["cycle"]), task="default/g-0")
    (look, *_) = looked["looks"]
    assert look["nodes"]["n0"] == {"refused": [["resources", "Insufficient cpu"]]}


def test_an_explanation(db: str) -> None:
    _, body = asked(db, "explanations", "g", "default", of="podgroup")
    assert (body["kind"], body["of"], body["state"], body["unblock"]) == ("Explanation", "podgroup", "Pending", [])
    _, helped = asked(db, "explanations", "g", "default", of="podgroup", budget="20")
    assert helped["unblock"]
    _, placed = asked(db, "explanations", "a-0", "default", of="pod")
    assert placed["state"] in ("Bound", "Running")


def test_when_a_job_starts(db: str) -> None:
    _, body = asked(db, "estimates", samples="2", horizon="1h")
    told = body["estimates"]["default/g"]
    assert (body["kind"], told["known"]) == ("Estimate", False)
    assert told["why"] == "nothing is known of how long 2 running pods run: no like of them has ended yet"
    one, _ = asked(db, "estimates", "g", "default", samples="2", horizon="1h")
    assert (one.code, json.loads(one.body)["estimates"]) == (200, {"default/g": told})
    assert asked(db, "estimates", "a", "default", samples="1", horizon="1s")[0].code == 404


def differs(db: str, *changes: dict[str, Any], **more: Any) -> tuple[AdviserAnswer, dict[str, Any]]:
    body = json.dumps({"changes": changes, "horizon": "1m", **more}).encode()
    found = answer(db, None, AdviserQuestion("whatifs", body=body))
    return found, json.loads(found.body or b"{}")


def test_what_would_differ(db: str) -> None:
    _, body = differs(db, {"addNodes": "3:like=n0"})
    assert body["kind"] == "WhatIf"
    assert body["jobs"]["default/g"]["after"]["start_s"] is not None
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [{"name": "c"}]}}
    assert differs(db, {"submit": [pod]})[0].code == 200


@pytest.mark.parametrize("resource", ["standings", "courses"])
def test_a_query_that_nobody_reads_is_refused(db: str, resource: str) -> None:
    found, _ = asked(db, resource, bogus="1")
    assert (found.code, "'bogus'" in found.message) == (400, True)


IMPOSSIBLE: list[tuple[list[dict[str, Any]], str]] = [
    ([], "expected one at least"),
    ([{"explode": "n0"}], "changes[0]: expected addNodes"),
    ([{"drain": "n0", "cordon": "n0"}], "expected one key"),
    ([{"submit": []}], "the input has no objects"),
    ([{"submit": [{"kind": "Pod"}]}], "changes[0]"),
    ([{"drain": "nosuch"}], "nosuch"),
    ([{"addNodes": "99999999:like=n0"}], "must not be more than 100000 in all"),
    ([{"addNodes": "60000:like=n0"}, {"addNodes": "60000:like=n0"}], "must not be more than 100000 in all"),
    ([{"config": "actions: ["}], "changes[0]"),
    ([{"config": 'actions: "allocate, zz"'}], "'zz'"),
    ([{"config": "actions: allocate\ntiers: [{plugins: [{name: gangg}]}]"}], "'gangg'"),
]


@pytest.mark.parametrize(("changes", "words"), IMPOSSIBLE)
def test_changes_that_cannot_be_made(db: str, changes: list[dict[str, Any]], words: str) -> None:
    found, _ = differs(db, *changes)
    assert found.code == 400
    assert words in found.message


def test_futures_have_an_end_and_bodies_a_form(db: str) -> None:
    assert differs(db, {"drain": "n0"}, horizon="900h")[0].code == 400
    assert answer(db, None, AdviserQuestion("whatifs", body=b"{")).code == 400


@pytest.mark.parametrize(
    ("resource", "name", "query", "code", "words"),
    [
        ("cycles", "99999", {}, 404, "no cycle 99999"),
        ("cycles", "x", {}, 400, "expected a number"),
        ("cycles", "newest", {"task": "default/x"}, 404, "knew no pod 'default/x'"),
        ("standings", "nosuch", {}, 404, "no queue 'nosuch'"),
        ("explanations", "nosuch", {}, 404, "knew no job"),
        ("explanations", "g", {"of": "node"}, 400, "expected one of pod, podgroup, job"),
        ("explanations", "g", {"budget": "-1"}, 400, "expected seconds"),
        ("explanations", "g", {"budget": "nan"}, 400, "expected seconds"),
        ("explanations", "g", {"cycle": "0"}, 400, "expected a number"),
        ("estimates", "", {"samples": "0"}, 400, "expected a whole number from 1 to 200"),
        ("estimates", "", {"samples": "9999"}, 400, "expected a whole number from 1 to 200"),
        ("estimates", "", {"horizon": "soon"}, 400, "expected a Go duration"),
    ],
)
def test_what_has_no_answer(db: str, resource: str, name: str, query: dict[str, str], code: int, words: str) -> None:
    found, _ = asked(db, resource, name, "default" if resource == "explanations" else "", **query)
    assert found.code == code
    assert found.reason == ("NotFound" if code == 404 else "BadRequest")
    assert words in found.message


def test_a_journal_without_a_cycle(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text(yaml.safe_dump_all(nodes(1)))
    run = ("run", "-f", tmp_path / "n.yaml", "--db", tmp_path / "j.db", "--no-scheduler")
    assert pumice(*run, "--time", "virtual", "--until", "1s").code == 0
    found = answer(str(tmp_path / "j.db"), None, AdviserQuestion("standings"))
    assert (found.code, found.message) == (404, "the journal has no cycle")


def test_the_board_as_a_cycle_opened(db: str) -> None:
    _, newest = asked(db, "boards", "newest")
    cpu = newest["resources"].index("cpu")
    assert (newest["nodes"], newest["allocatable"][cpu], newest["used"][cpu]) == (["n0", "n1"], [4.0, 4.0], [3.0, 3.0])
    placing = next(number for number, _, decisions in asked(db, "courses")[1]["cycles"] if decisions)
    assert asked(db, "boards", str(placing))[1]["used"][cpu] == [0.0, 0.0]
    assert asked(db, "boards", str(placing + 1))[1]["used"][cpu] == [3.0, 3.0]
    (resident,) = asked(db, "boards", "newest", node="n0")[1]["residents"]
    assert (resident["pod"], resident["job"], resident["asks"]["cpu"]) == ("default/a-0", "default/a", 3.0)
    assert asked(db, "boards", "newest", node="n9")[0].code == 404


def test_the_course_of_a_run(db: str) -> None:
    _, course = asked(db, "courses")
    numbers, moments, decisions = zip(*course["cycles"], strict=True)
    assert list(numbers) == list(range(1, len(numbers) + 1))
    assert list(moments) == sorted(moments)
    assert course["ended"] >= moments[-1]
    assert (sum(decisions), course["outcomes"], course["crashes"]) == (2, {"Bound": 2}, {})
    assert course["bytes"] == Path(db).stat().st_size
    assert any(event["text"] == "actor cache started" for event in course["events"])


def test_what_a_run_came_to(db: str) -> None:
    _, found = asked(db, "measures")
    (held,) = (
        each for each in found["series"] if (each["what"], each["resource"], each["queue"]) == ("held", "cpu", "q1")
    )
    assert max(held["values"]) == 6.0
    assert len(found["starts_s"]) == len(held["values"])


def test_the_story_of_a_job(db: str) -> None:
    _, placed = asked(db, "stories", "a", "default")
    assert (placed["queue"], placed["min_member"]) == ("q1", 2)
    assert {each["said"] for each in placed["tries"]} == {"tasks in gang are ready to be scheduled"}
    assert {(pod["name"], pod["node"], pod["evicted_for"]) for pod in placed["pods"]} == {
        ("a-0", "n0", None),
        ("a-1", "n1", None),
    }
    assert all(pod["created"] <= pod["bound"] <= pod["started"] for pod in placed["pods"])
    assert placed["submitted"] <= placed["admitted"]
    _, waiting = asked(db, "stories", "g", "default")
    assert "3/3 tasks in gang unschedulable" in waiting["tries"][-1]["said"]
    assert waiting["tries"][-1]["cycle"] >= 1
    assert all(pod["bound"] is None for pod in waiting["pods"])
    assert asked(db, "stories", "nobody", "default")[0].code == 404


def test_a_step_on_is_answered_without_starting_anew(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    began = list[int]()

    async def started(journal: Journal, first: int = 1) -> tuple[Replayer, int]:
        began.append(first)
        return await start(journal, first)

    boards = {number: asked(db, "boards", str(number))[1] for number in (3, 2, 1)}
    monkeypatch.setattr(verify, "start", started)
    assert {number: asked(db, "boards", str(number))[1] for number in (1, 2, 3)} == boards
    assert began == []
