"""A sweep runs every combination once, goes on where it was cut off, and gives the same table wherever it ran."""

from __future__ import annotations

import csv
import json
import os
import signal
from collections.abc import Generator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.config.errors import ConfigError
from pumice.errors import InputError
from pumice.executors import WorkerDiedError, dask, local
from pumice.questions.sweep.one_run import WALL, configuration, key_of, lived, placed
from pumice.questions.sweep.spec import read_spec
from pumice.questions.sweep.sweep import SweepPart, read_part, sweep, write
from tests.kit.jobs import job_task, vcjob
from tests.kit.nodes import node
from tests.kit.source import ROOT
from tests.pumice.cli.terminal import pumice

CONFIG = """\
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: proportion}, {name: binpack, arguments: {binpack.weight: 1}}]
"""
SPEC: dict[str, Any] = {
    "fixed": {"input": ["nodes.yaml", "csv:jobs.csv"], "until": "2h", "config": "one.conf"},
    "grid": {"seed": [0, 1], "arguments.binpack.binpack.weight": [1, 5]},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one.conf").write_text(CONFIG, "utf-8")
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump_all([node("n0", cpu="4")]), "utf-8")
    (tmp_path / "jobs.csv").write_text("arrival,duration,pods,cpu\n0,60,2,2\n10,60,1,1\n20,60,4,1\n", "utf-8")
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(SPEC, sort_keys=False), "utf-8")
    return tmp_path


@contextmanager
def threads() -> Generator[Executor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def slept(run: dict[str, Any], folder: str) -> dict[str, Any]:
    """A run that costs nothing."""
    return {"doubled": 2 * run["seed"], WALL: 0.5, "where": Path(folder).name}


def killed_once(run: dict[str, Any], folder: str) -> dict[str, Any]:
    """The first worker that comes here dies as by kill -9."""
    mark = Path(folder) / "killed"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return slept(run, folder)


def test_every_combination_is_a_run(folder: Path) -> None:
    spec = read_spec(folder / "spec.yaml")
    assert spec.varied == ("seed", "arguments.binpack.binpack.weight")
    assert [(run["seed"], run["arguments.binpack.binpack.weight"]) for run in spec.runs] == [
        (0, 1),
        (0, 5),
        (1, 1),
        (1, 5),
    ]
    assert len({key_of(run, folder) for run in spec.runs}) == 4


def test_a_run_has_the_figures_of_its_workload(folder: Path) -> None:
    spec = read_spec(folder / "spec.yaml")
    found = lived(spec.runs[0], str(folder))
    assert (found["jobs"], found["ended"], found["makespan_s"] // 60) == (3, 3, 3)
    assert found["cpu held_s"] == pytest.approx(60 * (4 + 1 + 4), abs=1)
    assert found[WALL] > 0


def test_what_was_run_is_not_run_again_and_other_content_is_another_run(folder: Path) -> None:
    spec = read_spec(folder / "spec.yaml")
    first = sweep(spec, folder / "results", threads, work=slept)
    assert (first.fresh, [row["doubled"] for row in first.rows]) == (4, [0, 0, 2, 2])
    cut_off = sorted((folder / "results").glob("*.json"))[0]
    cut_off.unlink()
    assert sweep(spec, folder / "results", threads, work=slept).fresh == 1
    (folder / "jobs.csv").write_text("arrival,duration\n0,1\n", "utf-8")
    assert sweep(spec, folder / "results", threads, work=slept).fresh == 4


def test_parts_are_run_apart_and_the_last_one_has_the_table(folder: Path) -> None:
    spec = read_spec(folder / "spec.yaml")
    whole = sweep(spec, folder / "all", threads, work=slept)
    parts = [sweep(spec, folder / "results", threads, work=slept, part=SweepPart(number, 3)) for number in (2, 0, 1)]
    assert [(part.fresh, part.missing, len(part.rows)) for part in parts] == [(1, 3, 1), (2, 1, 3), (1, 0, 4)]
    assert parts[-1].rows == whole.rows


@pytest.mark.parametrize("said", ["4/4", "1", "-1/2", "a/b", "0/0"])
def test_a_part_is_one_of_several(said: str) -> None:
    with pytest.raises(InputError, match="expected NUMBER/OF"):
        read_part(said)


def test_the_parts_of_a_command_make_one_table(folder: Path) -> None:
    (folder / "spec.yaml").write_text(yaml.safe_dump({**SPEC, "grid": {"seed": [0, 1]}}), "utf-8")
    first, second = (
        pumice("sweep", folder / "spec.yaml", "--workers", 1, "--part", f"{part}/2", "--format", "table")
        for part in (0, 1)
    )
    assert first.out.endswith("\n1 runs, 1 of them now, 1 are missing yet\n")
    assert "\n2 runs, 1 of them now, in " in second.out
    assert (folder / "spec.csv").exists()


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_run_only(folder: Path) -> None:
    spec = read_spec(folder / "spec.yaml")
    found = sweep(spec, folder / "results", lambda: local(1), work=killed_once)
    assert [row["doubled"] for row in found.rows] == [0, 0, 2, 2]


def always_killed(run: dict[str, Any], folder: str) -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


@pytest.mark.slow
def test_workers_that_keep_dying_end_it(folder: Path) -> None:
    with pytest.raises(WorkerDiedError):
        sweep(read_spec(folder / "spec.yaml"), folder / "results", lambda: local(1), work=always_killed)


@pytest.mark.slow
def test_dask_gives_the_same_table_though_a_worker_is_killed(folder: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: pip install 'pumice[dask]'")
    spec = read_spec(folder / "spec.yaml")
    here = sweep(spec, folder / "here", lambda: local(2)).rows
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        victims = [worker.process.pid for worker in cluster.workers.values()][:1]
        ended: list[int] = []

        def strike() -> None:
            ended.append(1)
            if len(ended) == 1:
                os.kill(victims[0], signal.SIGKILL)

        there = sweep(spec, folder / "there", lambda: dask(cluster.scheduler_address), strike).rows
        address = cluster.scheduler_address
        again = pumice("sweep", folder / "spec.yaml", "--dask", address, "--results", folder / "by-hand")
    assert again.code == 0, again.err
    assert len(ended) == 4
    write(here, folder / "here.csv")
    write(there, folder / "there.csv")
    tables = [without_wall(folder / name) for name in ("here.csv", "there.csv", "spec.csv")]
    assert tables[0] == tables[1] == tables[2]


def without_wall(table: Path) -> bytes:
    """The file but for its last column, the only one in which times of this machine stand."""
    head, *lines = table.read_bytes().splitlines(keepends=True)
    assert head.endswith(f",{WALL}\n".encode())
    return b"".join(line[: line.rindex(b",")] + b"\n" for line in (head, *lines))


def test_two_sweeps_of_the_same_are_the_same_file_but_for_the_time_they_took(folder: Path) -> None:
    tables: list[bytes] = []
    for name in ("one", "two"):  # each afresh
        swept = sweep(read_spec(folder / "spec.yaml"), folder / name, threads)
        assert swept.fresh == 4
        write(swept.rows, folder / f"{name}.csv")
        tables.append(without_wall(folder / f"{name}.csv"))
    assert tables[0] == tables[1]
    assert len(tables[0].splitlines()) == 5


def test_a_damaged_result_is_named(folder: Path) -> None:
    spec = read_spec(folder / "spec.yaml")
    sweep(spec, folder / "results", threads, work=slept)
    damaged = sorted((folder / "results").glob("*.json"))[0]
    damaged.write_text("half of", "utf-8")
    with pytest.raises(InputError, match=f"{damaged.name}: not the result of a run: remove it"):
        sweep(spec, folder / "results", threads, work=slept)
    damaged.unlink()
    assert sweep(spec, folder / "results", threads, work=slept).fresh == 1


def run_by_another_meanwhile(run: dict[str, Any], folder: str) -> dict[str, Any]:
    """Another sweep of the same folder of results is just writing down this run."""
    result = Path(folder) / "results" / f"{key_of(run, Path(folder))}.json"
    result.with_suffix(".part").mkdir()
    result.write_text(json.dumps(slept(run, folder)), "utf-8")
    return slept(run, folder)


def test_two_sweeps_may_share_a_folder_of_results(folder: Path) -> None:
    found = sweep(read_spec(folder / "spec.yaml"), folder / "results", threads, work=run_by_another_meanwhile)
    assert [row["doubled"] for row in found.rows] == [0, 0, 2, 2]


def test_arguments_are_set_in_the_configuration(folder: Path) -> None:
    text = configuration({"config": "one.conf", "arguments.binpack.binpack.weight": 5}, folder)
    (tier,) = yaml.safe_load(text)["tiers"]
    assert tier["plugins"][-1]["arguments"] == {"binpack.weight": 5}
    assert yaml.safe_load(text)["actions"] == "enqueue, allocate"
    assert yaml.safe_load(configuration({"config": "one.conf", "actions": "allocate"}, folder)) == {
        **yaml.safe_load(CONFIG),
        "actions": "allocate",
    }
    with pytest.raises(ConfigError, match="no plugin 'drf'"):
        configuration({"config": "one.conf", "arguments.drf.x": 5}, folder)


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ("nodes.yaml", "{0}/nodes.yaml"),
        ("swf:a.swf.gz,nodes=8x16", "swf:{0}/a.swf.gz,nodes=8x16"),
        ("swf:a.swf,queues=user,jobs=2", "swf:{0}/a.swf,queues=user,jobs=2"),
        ("journal:a.db", "journal:{0}/a.db"),
        ("openb:n.csv,p.csv,times", "openb:{0}/n.csv,{0}/p.csv,times"),
    ],
)
def test_files_lie_beside_the_specification(said: str, where: str) -> None:
    assert placed(said, Path("/lab")) == where.format("/lab")


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("[1]", "expected a mapping, was a list"),
        ("a: [", "not YAML"),
        ("girds: {}", "girds: unknown key 'girds', did you mean 'grid'?"),
        ("fixed: 3", "fixed: expected a mapping"),
        ("list: {a: 1}", "list: expected a list, was a mapping"),
        ("{fixed: {input: x}, grid: {seed: 3}}", "grid.seed: expected a list of at least one value"),
        ("fixed: {seed: 1}", "input: expected manifests or a trace"),
        ("fixed:\n  input: x\n  until: soon", "spec.yaml:3: until: expected a duration such as 90s, was 'soon'"),
        ("fixed: {input: x}\nlist:\n- seed: 1\n- seed: one", "spec.yaml:4: seed: expected a whole number, was 'one'"),
        ("fixed: {input: x}\ngrid:\n  seed: [1, one]", "spec.yaml:3: seed: expected a whole number, was 'one'"),
        ("fixed: {input: x}\nfixed: {}", "spec.yaml:2: the key 'fixed' stands here twice"),
        ("fixed: {input: x}\n---\ngrid: {}", "spec.yaml:3: a second YAML document"),
        ("fixed: {input: x, seed: one}", "seed: expected a whole number, was 'one'"),
        ("fixed: {input: x, arguments.drf: 1}", "[arguments.drf]: expected arguments.PLUGIN.ARGUMENT"),
    ],
)
def test_what_is_wrong_with_a_specification_is_said(tmp_path: Path, said: str, problem: str) -> None:
    (tmp_path / "spec.yaml").write_text(said, "utf-8")
    with pytest.raises((ConfigError, InputError)) as refused:
        read_spec(tmp_path / "spec.yaml")
    assert problem in str(refused.value)


def test_a_table_begins_with_what_varied_and_ends_with_the_time_it_took(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"seed": 0, WALL: 1.5, "jobs": 3, "wait": None},
        {"seed": 1, WALL: 2.5, "jobs": 3, "other": 1},
    ]
    write(rows, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    assert lines == [["seed", "jobs", "wait", "other", WALL], ["0", "3", "", "", "1.5"], ["1", "3", "", "1", "2.5"]]
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install 'pumice[tables]'")
    write(rows, tmp_path / "t.parquet")
    assert parquet.read_table(tmp_path / "t.parquet").column_names == lines[0]
    with pytest.raises(InputError, match="csv"):
        write(rows, tmp_path / "t.xlsx")


def test_the_command_makes_the_table(folder: Path) -> None:
    (folder / "spec.yaml").write_text(yaml.safe_dump({**SPEC, "grid": {"seed": [0]}}), "utf-8")
    said = pumice("sweep", folder / "spec.yaml", "--workers", 1, "--format", "table")
    assert said.code == 0, said.err
    assert "\n1 runs, 1 of them now, in " in said.out
    again = pumice("sweep", folder / "spec.yaml", "--workers", 1, "-o", folder / "again.csv")
    assert (again.json["runs"], again.json["fresh"]) == (1, 0)
    assert (folder / "again.csv").read_bytes() == (folder / "spec.csv").read_bytes()
    assert pumice("sweep", folder / "spec.yaml", "-o", folder / "t.txt").code == 2


def test_a_job_that_is_refused_ends_the_sweep_with_its_words(folder: Path) -> None:
    bad = vcjob("NOT a name", job_task("t", replicas=1, cpu="1", memory=None))
    (folder / "nodes.yaml").write_text(yaml.safe_dump(bad), "utf-8")
    with pytest.raises(InputError, match="NOT a name"):
        sweep(read_spec(folder / "spec.yaml"), folder / "results", threads)


def test_an_indexed_job_runs_the_parts(tmp_path: Path) -> None:
    """Under Pumice itself; each pod knows its part by what an Indexed Job tells it."""
    given = [part for name in ("cluster.yaml", "sweep-indexed.yaml") for part in ("-f", ROOT / "examples" / name)]
    said = pumice("run", *given, "--time", "virtual", "--until", "idle", "--db", tmp_path / "i.db", "-o", "json")
    assert (said.code, json.loads(said.out)["pods"]["succeeded"]) == (0, 4), said.err
    text = (ROOT / "examples" / "sweep-indexed.yaml").read_text("utf-8")
    job = next(obj for obj in yaml.safe_load_all(text) if obj["kind"] == "Job")
    assert '--part "$JOB_COMPLETION_INDEX/4"' in job["spec"]["template"]["spec"]["containers"][0]["command"][-1]
    assert job["spec"]["completions"] == 4
