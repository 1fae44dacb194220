"""`pumice queue` over manifests and over a journal."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from pumice.cli.tables.frame import drawn
from pumice.cli.tables.standings import QueueTree
from pumice.questions.adviser.queues import QueueStanding
from tests.kit.jobs import gang
from tests.kit.nodes import nodes
from tests.kit.queues import queue
from tests.pumice.cli.terminal import pumice


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Two nodes, a gang that fits and one that is too large."""
    path = tmp_path / "cluster.yaml"
    objects = [*nodes(2, cpu="4"), queue("q1"), *gang("a", pods=2, cpu="3", queue="q1", duration="0")]
    path.write_text(
        yaml.safe_dump_all([*objects, *gang("g", pods=3, cpu="4", queue="q1", created="2027-01-01T00:00:00Z")])
    )
    return path


def test_manifests(cluster: Path) -> None:
    said = pumice("queue", "q1", "-f", cluster, "-o", "json")
    assert said.code == 0
    assert list(said.json["queues"]) == ["q1"]
    (job,) = said.json["waiting"]
    assert (job["job"], job["position"], job["class"], job["reason"]) == (
        "default/g", 1, "NoCapacity", "LargerThanCluster",
    )  # fmt: skip
    assert job["before_it"]["job"] == "default/a"
    assert said.json["classes"]["NoCapacity"] == 1
    assert said.json["now"] == 1798761600.0  # when the newest of them was made, whenever that is asked
    assert pumice("queue", "q1", "-f", cluster, "-o", "json").out == said.out
    table = pumice("queue", "-f", cluster, "-o", "table").out
    assert "default/g" in table
    assert "1 wait: 1 LargerThanCluster (NoCapacity)" in table


def test_a_journal_and_a_cycle_of_it(cluster: Path, tmp_path: Path) -> None:
    db = tmp_path / "j.db"
    assert pumice("run", "-f", cluster, "--db", db, "--time", "virtual", "--until", "20s", "-o", "json").code == 0
    now = pumice("queue", "--db", db, "-o", "json")
    assert [(job["job"], job["reason"]) for job in now.json["waiting"]] == [("default/g", "LargerThanCluster")]
    assert now.json["queues"]["q1"]["allocated"]["cpu"] == 6.0
    first = pumice("queue", "--db", db, "--cycle", 1, "-o", "json")
    assert first.json["cycle"] == 1
    assert [job["job"] for job in first.json["waiting"]] == ["default/g"]
    assert first.json["queues"]["q1"]["allocated"] == {}, (first.json["queues"], first.json["waiting"])
    assert pumice("queue", "--db", db, "-o", "json").out == now.out


def test_what_queues_held_lately(cluster: Path, tmp_path: Path) -> None:
    db, wide = tmp_path / "j.db", {"COLUMNS": "200"}
    assert pumice("run", "-f", cluster, "--db", db, "--time", "virtual", "--until", "20s", "-o", "json").code == 0
    table = pumice("queue", "--db", db, "-o", "table", env=wide).out
    assert any(line.startswith("q1 ") and "█ cpu" in line for line in table.splitlines())
    assert "lately" not in pumice("queue", "-f", cluster, "-o", "table", env=wide).out, "manifests have no past"


def test_eighty_columns_cut_no_name_and_no_figure(tmp_path: Path) -> None:
    path, narrow = tmp_path / "cluster.yaml", {"COLUMNS": "80"}
    amounts = {"cpu": "123", "memory": "456Gi", "nvidia.com/gpu": "78"}
    tree = [
        queue("engineering", capability=amounts),
        queue("research-and-teaching", deserved=amounts),
    ]
    works = "research-and-teaching"
    work = [each for name in ("a", "b") for each in gang(name, pods=1, queue=works, cpu="2", gpus=4)]
    path.write_text(yaml.safe_dump_all([*nodes(40, cpu="64", gpus=4), *tree, *work, *gang("huge", pods=1, gpus=99)]))
    said = pumice("queue", "-f", path, "-o", "table", env=narrow)
    assert said.code == 0
    lines = said.out.splitlines()
    assert [line for line in lines if len(line.rstrip()) > 80] == []
    assert "…" not in said.out
    assert any(line.split()[:2] == ["nvidia.com/gpu", "78"] for line in lines)
    top = pumice("top", "--db", _run(path, tmp_path), "--once", "-o", "table", env=narrow)
    assert top.code == 0
    tables = top.out.splitlines()[3:]  # after sentences, which break where the terminal ends
    assert [line for line in tables if len(line.rstrip()) > 80] == []
    assert "…" not in top.out


def _run(path: Path, folder: Path) -> Path:
    run = ("run", "-f", path, "--db", folder / "j.db", "--time", "virtual", "--until", "20s", "-o", "json")
    assert pumice(*run).code == 0
    return folder / "j.db"


def test_the_resource_of_which_a_queue_held_the_largest_part_is_drawn() -> None:
    rows = [
        ("capacity", "", "cpu", [10, 10, 10]),
        ("capacity", "", "gpu", [4, 4, 4]),
        ("held", "", "cpu", [5, 5, 5]),
        ("held", "q", "cpu", [1, 2, 9]),
        ("held", "q", "gpu", [0, 2, 4]),
        ("waiting", "p", "cpu", [9, 9, 9]),
    ]
    series = [dict(zip(("what", "queue", "resource", "values"), row, strict=True)) for row in rows]
    measures = {"began": 100.0, "starts_s": [0.0, 5.0, 10.0], "series": series}
    assert drawn(measures, 110.0) == {"q": "▁▅█ gpu"}
    assert drawn(measures, 105.0) == {"q": "▁█ gpu"}
    assert drawn(measures, 99.0) == {}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nosuch",), "no queue 'nosuch'"),
        (("--cycle", 3), "--cycle"),
        (("--db", "nowhere.db", "--config", "c.conf"), "a journal holds its own configuration"),
        (("--db", "nowhere.db"), "nowhere.db"),
    ],
)
def test_what_cannot_be_answered_is_refused(cluster: Path, arguments: tuple[object, ...], words: str) -> None:
    given = () if "--db" in arguments else ("-f", cluster)
    said = pumice("queue", *given, *arguments)
    assert said.code == 2
    assert words in said.err


def test_nobody_waits(tmp_path: Path) -> None:
    path = tmp_path / "idle.yaml"
    path.write_text(yaml.safe_dump_all([*nodes(1), queue("q1")]))
    assert "No job waits." in pumice("queue", "-f", path, "-o", "table").out


def test_when_they_start_beside_it_or_by_itself(tmp_path: Path) -> None:
    db, path = tmp_path / "j.db", tmp_path / "cluster.yaml"
    first = gang("a", pods=2, cpu="3", queue="q1", duration="40s")
    second = gang("g", pods=2, cpu="3", queue="q1", duration="5s", created="2027-01-01T00:00:00Z")
    path.write_text(yaml.safe_dump_all([*nodes(2, cpu="4"), queue("q1"), *first, *second]))
    assert pumice("run", "-f", path, "--db", db, "--time", "virtual", "--until", "20s", "-o", "json").code == 0
    said = pumice("queue", "--db", db, "--eta", "-o", "json")
    found = pumice("eta", "--db", db, "-o", "json").json
    assert {"schema": "eta/1", **{job["job"]: job["eta"] for job in said.json["waiting"]}} == found
    assert found["default/g"]["known"] is False
    assert found["default/g"]["with_known_durations_s"] == pytest.approx(20.0, abs=2.0)
    assert "starts" in pumice("queue", "--db", db, "--eta", "-o", "table").out
    assert "default/a: does not wait" in pumice("eta", "a", "--db", db, "-o", "table").out
    nobody = pumice("eta", "gg", "--db", db)
    assert (nobody.code, "job default/gg does not exist; near: default/g" in nobody.err) == (2, True)
    assert "--runs" in pumice("eta", "--db", db, "--runs", db).err
    assert "--db and -f" in pumice("queue", "--db", db, "-f", path).err


def test_how_good_the_estimates_of_a_run_were(tmp_path: Path) -> None:
    db, path = tmp_path / "j.db", tmp_path / "cluster.yaml"
    jobs = [each for n in range(16) for each in gang(f"j{n:02}", pods=1, cpu="3", queue="q1", duration=f"{9 + n % 3}s")]
    path.write_text(yaml.safe_dump_all([*nodes(1, cpu="4"), queue("q1"), *jobs]))
    assert pumice("run", "-f", path, "--db", db, "--time", "virtual", "--until", "idle", "-o", "json").code == 0
    told = pumice("eta", "--db", db, "--score", 2, "--samples", 5, "-o", "json").json
    assert told["known"] > 0
    assert told["coverage"] >= 0.7
    assert told["error_s"] < 15.0
    refused = pumice("eta", "--db", db, "--score", 2, "j01")
    assert (refused.code, "--score" in refused.err) == (2, True)


@pytest.mark.slow
def test_how_good_estimates_would_be_of_a_workload(tmp_path: Path) -> None:
    trace, machines = tmp_path / "trace.csv", tmp_path / "nodes.yaml"
    trace.write_text("arrival,duration,cpu\n" + "".join(f"{80 * n},{55 + n % 7},3\n" for n in range(24)))
    machines.write_text(yaml.safe_dump_all([*nodes(1, cpu="4"), queue("root"), queue("default")]))
    given = ("eta", "-f", machines, "-f", f"csv:{trace}", "--denser", 2.0)
    scored = (*given, "--first", 20, "--score", 3, "--samples", 4, "-o")
    told = pumice(*scored, "json")
    assert told.code == 0
    assert told.json["known"] > 0
    assert told.json["earlier"] + told.json["later"] == round(told.json["known"] * (1 - told.json["coverage"]))
    assert 0 < told.json["second_half"]["asked"] < told.json["asked"]
    assert pumice(*scored, "json").out == told.out
    assert "coverage" in pumice(*scored, "table").out
    for words, said in (
        ((*given, "-o", "json"), "goes with --score"),
        (("eta", "--db", tmp_path / "j.db", "--score", 2, "--first", 3), "go with -f"),
        ((*given, "--score", 90), "90 moments want 91 arrivals"),
    ):
        refused = pumice(*words)
        assert (refused.code, said in refused.err) == (2, True)


def test_volumes_that_nodes_can_attach_are_no_amount_of_a_queue() -> None:
    most = {"cpu": 4.0, "attachable-volumes-csi-x.io": 39.0}
    console = Console(width=200, record=True, file=StringIO())
    console.print(QueueTree("", {"q": QueueStanding("", "Open", 1, 0, capability=most)}))
    said = console.export_text()
    assert "cpu" in said
    assert "attachable" not in said
