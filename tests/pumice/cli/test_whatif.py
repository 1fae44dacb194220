"""`pumice whatif` over manifests, a journal and a server's objects: what it says, and how it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.budgets import budget
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import node, nodes
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue
from tests.pumice.cli.terminal import pumice

OBJECTS = [
    *nodes(2, cpu="4"),
    queue("q1"),
    *gang("a", pods=2, cpu="3", queue="q1", duration="30s"),
    *gang("g", pods=2, cpu="3", queue="q1", duration="10s", created="2027-01-01T00:00:00Z"),
]


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Two nodes; a gang that fills them, and one that waits for it."""
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(OBJECTS))
    return path


def test_more_nodes_let_the_gang_start_earlier(cluster: Path) -> None:
    question = ("whatif", "-f", cluster, "--add-nodes", "2:like=n0", "--horizon", "2m")
    said = pumice(*question, "-o", "json")
    assert said.code == 1
    job = said.json["jobs"]["default/g"]
    assert (job["code"], job["before"]["start_s"], job["after"]["start_s"]) == ("StartsEarlier", 30.0, 0.0)
    assert job["by_s"] == -30.0
    assert said.json["unknown"] == {"running": 0, "waiting": 0, "supposed_s": None}
    assert pumice(*question, "-o", "json").out == said.out
    table = pumice(*question, "-o", "table").out
    assert "starts earlier" in table
    assert "30s" in table


def test_what_changes_nothing_ends_with_0(cluster: Path) -> None:
    said = pumice("whatif", "-f", cluster, "--set", "queue/q1:spec.weight=3", "-o", "table")
    assert (said.code, said.out.splitlines()[0]) == (0, "Nothing changes.")


def test_two_sets_of_changes_against_each_other(cluster: Path) -> None:
    said = pumice("whatif", "-f", cluster, "--cordon", "n0", "--against", "--add-nodes 2:like=n0", "-o", "json")
    assert said.json["jobs"]["default/g"]["code"] == "StartsNoMore"
    assert said.json["jobs"]["default/a"]["code"] == "StartsNoMore"
    assert "--add-node'" in pumice("whatif", "-f", cluster, "--cordon", "n0", "--against", "--add-node x").err


def test_a_journal_at_its_end_and_at_a_cycle(cluster: Path, tmp_path: Path) -> None:
    db, kept = tmp_path / "j.db", tmp_path / "kept.db"
    assert pumice("run", "-f", cluster, "--db", db, "--time", "virtual", "--until", "20s", "-o", "json").code == 0
    new = tmp_path / "new.yaml"
    new.write_text(yaml.safe_dump(vcjob("new", job_task(cpu="1", duration="5s"), queue="q1")))
    asked = ("whatif", "--db", db, "--submit", new, "--horizon", "1m", "-o", "json")
    said = pumice(*asked, "--save", kept)
    assert said.json["jobs"]["default/new"]["code"] == "Comes"
    assert pumice("journal", kept, "--check", "-o", "json").json["whole"]
    assert pumice(*asked, "--save", kept).code == 2
    first = pumice("whatif", "--db", db, "--cycle", 2, "--add-nodes", "2:like=n0", "-o", "json").json
    assert first["jobs"]["default/g"]["by_s"] < -25.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "nothing is changed"),
        (("--set", "queue/q7:spec.weight=1"), "Queue q7 does not exist"),
        (("--cordon", "n0", "--horizon", "soon"), "--horizon"),
        (("--cordon", "n0", "--cycle", 3), "--cycle"),
        (("--add-nodes", "99999999:like=n0"), "must not be more than 100000 in all"),
        (("--submit", "nowhere.yaml"), "nowhere.yaml"),
        (("--set", "queue/q1:spec.wieght=1"), "did you mean 'weight'?"),
        (("--set", "queue/q1:spec.weight=-1"), "the api refuses Queue q1"),
        (("--set", "queue/q1:spec.weight=-1", "--until-starts", "g"), "the api refuses Queue q1"),
        (("--until-starts", "g", "--save", "kept.db"), "--save: a search tries many futures: leave it out"),
        (("--until-starts", "g", "--against", "--cordon n0"), "--against: a search"),
        (("--until-starts", "g", "--within", "10s", "--like", "n7"), "Node n7 does not exist"),
        (("--cordon", "n0", "--like", "n1"), "--like: this goes with --until-starts alone"),
        (("--cordon", "n0", "--workers", "2"), "--workers: this goes with --until-starts alone"),
        (("--cordon", "n0", "--dask", "tcp://h:1"), "--dask: this goes with --until-starts alone"),
        (("--cordon", "n0", "--within", "2m"), "--within: this goes with"),
        (("--cordon", "n0", "--cordon", "n0"), "--cordon: said twice"),
        (("--set", "queue/q1:spec.weight=1", "--set", "queue/q1:spec.weight=2"), "--set: said twice"),
        (("--cordon", "n0", "--against", "--drain n1 --drain n1"), "--drain: said twice"),
        (("--cordon", "n0", "--db", "run.db"), "--db and -f name different clusters"),
    ],
)
def test_bad_questions(arguments: tuple[Any, ...], words: str, cluster: Path) -> None:
    said = pumice("whatif", "-f", cluster, *arguments)
    assert said.code == 2
    assert words in said.err


def test_another_configuration_is_read_as_strictly_as_the_first(cluster: Path, tmp_path: Path) -> None:
    conf = tmp_path / "other.conf"
    conf.write_text('actions: "allocate, zz"\ntiers: [{plugins: [{name: gangg}, {name: predicates}]}]\n')
    asked = ("whatif", "-f", cluster, "--horizon", "5s")
    for change in (("--config", conf), ("--cordon", "n0", "--against", f"--config {conf}")):
        said = pumice(*asked, *change)
        assert (said.code, "'zz'" in said.err) == (2, True)
    lenient = pumice(*asked, "--config", conf, "--lenient")
    assert lenient.code in (0, 1)
    assert "'zz'" in lenient.err  # as in Volcano, the whole file counts for nothing
    assert "'gangg'" not in lenient.err


def test_a_budget_keeps_pods_that_manifests_show_as_running(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    labels = {"app": "web"}
    pods = [pod(name, node="n0", labels=labels) for name in ("p1", "p2")]
    for each in pods:
        each["metadata"].pop("uid", None)
    asked = ("whatif", "-f", path, "--drain", "n0", "--horizon", "1m", "-o", "json")
    path.write_text(yaml.safe_dump_all([*nodes(2), *pods, budget(minAvailable=2)]))
    said = pumice(*asked).json
    assert said["evicted"] == []
    assert list(said["denied"]) == ["RequestEviction default/p1", "RequestEviction default/p2"]
    assert "disruption budget" in said["denied"]["RequestEviction default/p1"]
    path.write_text(yaml.safe_dump_all([*nodes(2), *pods, budget(minAvailable=1)]))
    (gone,) = pumice(*asked).json["evicted"]
    assert (gone["pod"], gone["for"], gone["preemptor"]) == ("default/p1", "", "")


def test_pods_that_do_not_say_run_as_long_as_the_recorded_run_gave_them(tmp_path: Path) -> None:
    db, path = tmp_path / "j.db", tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all([*nodes(1, cpu="4"), queue("q1"), *gang("a", pods=1, cpu="3", queue="q1")]))
    run = ("run", "-f", path, "--db", db, "--time", "virtual", "--until", "20s", "--default-duration", "90s")
    assert pumice(*run, "-o", "json").code == 0
    asked = ("whatif", "--db", db, "--horizon", "5m", "--add-nodes", "1:like=n0")
    said = pumice("whatif", "--db", db, "--horizon", "5m", "--drain", "n0", "-o", "json").json
    assert said["unknown"] == {"running": 1, "waiting": 0, "supposed_s": 90.0}
    assert 65.0 < said["jobs"]["default/a"]["before"]["end_s"] < 75.0
    assert "1m30s is supposed (--default-duration)" in pumice(*asked, "-o", "table").out
    longer = pumice(*asked, "--default-duration", "4m", "-o", "json").json
    assert longer["unknown"]["supposed_s"] == 240.0


def test_a_search_says_what_would_do(cluster: Path) -> None:
    question = ("whatif", "-f", cluster, "--until-starts", "g", "--within", "10s")
    said = pumice(*question, "-o", "json")
    assert said.code == 1
    assert (said.json["job"], said.json["starts_s"], said.json["complete"]) == ("default/g", None, True)
    nodes_more = said.json["answers"][0]
    assert (nodes_more["code"], nodes_more["amount"], nodes_more["least"]) == ("Nodes", 2, True)
    table = pumice(*question, "-o", "table").out
    assert "2 more nodes like n0" in table
    assert "the least" in table
    assert pumice(*question, "-o", "json").out == said.out


def test_a_change_that_is_longer_than_a_line_is_told_in_full(tmp_path: Path) -> None:
    thing = "example.com/things-of-a-rather-long-name"
    waiting = pod("g-0", group="g")
    waiting["spec"]["containers"][0]["resources"]["requests"][thing] = "3"
    full = queue("q", capability={thing: "1"})
    objects = [node("n0", extra={thing: "10"}), full, pod_group("g", queue="q", phase="Inqueue"), waiting]
    (tmp_path / "c.yaml").write_text(yaml.safe_dump_all(objects))
    out = pumice("whatif", "-f", tmp_path / "c.yaml", "--until-starts", "g", "--within", "10s", "-o", "table").out
    assert f"""[\"{thing}\"]=3'""" in out


def test_search_for_a_job_that_runs_in_part_asks_for_all_its_pods(tmp_path: Path) -> None:
    objects = [node("n0", cpu="2"), queue("default"), *gang("g", pods=3, min_member=2, cpu="1", nodes=["n0", "n0"])]
    (tmp_path / "c.yaml").write_text(yaml.safe_dump_all(objects))
    question = ("whatif", "-f", tmp_path / "c.yaml", "--until-starts", "g", "--within", "10s")
    said = pumice(*question, "-o", "json")
    assert (said.code, said.json["whole"], said.json["starts_s"]) == (1, True, None)
    first = said.json["answers"][0]
    assert (first["code"], first["amount"]) == ("Nodes", 1)
    words = "default/g runs with some of its pods, and does not get all within 10s. It would with:"
    assert pumice(*question, "-o", "table").out.splitlines()[0] == words


def test_what_starts_anyway_needs_no_search(cluster: Path) -> None:
    said = pumice("whatif", "-f", cluster, "--until-starts", "g", "-o", "table")
    assert (said.code, said.out) == (0, "default/g starts after 30s as it is.\n")
    assert "near: default/g" in pumice("whatif", "-f", cluster, "--until-starts", "gg").err
    none = pumice("whatif", "-f", cluster, "--until-starts", "g", "--within", "1s", "--budget", "0", "-o", "table")
    assert "--budget" in none.out


def test_ctrl_c_ends_a_question_with_a_sentence(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pumice.cli.whatif.what_if", interrupted)
    said = pumice("whatif", "-f", cluster, "--cordon", "n0", "-o", "json")
    assert (said.code, said.out) == (130, "")
    assert said.err.splitlines()[-1] == "pumice: interrupted before the end"


def test_pods_of_the_default_scheduler_are_told(cluster: Path) -> None:
    cluster.write_text(yaml.safe_dump_all([*OBJECTS, pod("plain", cpu="1", scheduler="default-scheduler")]))
    said = pumice("whatif", "-f", cluster, "--cordon", "n0", "--horizon", "5s", "-o", "json")
    assert "Pod default/plain" in said.json["supposed"][0]
    estimated = pumice("eta", "-f", cluster, "--samples", "2", "--horizon", "60s", "-o", "json")
    assert "Pod default/plain" in estimated.json["default/g"]["supposed"][0]
