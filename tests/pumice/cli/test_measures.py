"""`pumice measures` says the same of a run as a table, as JSON, as CSV and as Parquet."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
import yaml

from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.pumice.cli.terminal import pumice


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of a run on virtual time: three gangs, two of which have their turn, and one that never fits."""
    folder = tmp_path_factory.mktemp("measures")
    objects = [node(f"n{number}", cpu="4") for number in range(2)]
    for number in range(2):
        objects += gang(f"g{number}", pods=2, cpu="4", duration="60s")
    objects += gang("huge", pods=2, cpu="100", duration="1s")
    (folder / "all.yaml").write_text(yaml.safe_dump_all(objects), "utf-8")
    said = pumice(
        "run", "-f", folder / "all.yaml", "--db", folder / "j.db", "--time", "virtual", "--until", "300s", "-o", "json"
    )
    assert said.code == 0, said.err
    return folder / "j.db"


def test_the_second_gang_waits_for_the_first_and_the_third_for_ever(file: Path) -> None:
    said = pumice("measures", file, "-o", "json")
    assert said.code == 0, said.err
    jobs = {row["job"]: row for row in said.json["jobs"]}
    waits = sorted(row["wait_s"] for row in jobs.values() if row["wait_s"] is not None)
    assert waits[0] < 2
    assert 60 <= waits[1] < 63
    assert jobs["default/huge"]["started"] is None
    assert {row["run_s"] for row in jobs.values() if row["run_s"]} == {60.0}
    cpu = said.json["summary"]["resources"]["cpu"]
    assert cpu["held_s"] == pytest.approx(2 * 2 * 4 * 60, rel=0.01)
    assert cpu["utilisation"] == pytest.approx(cpu["held_s"] / cpu["capacity_s"], abs=1e-3)


def test_a_table_shows_who_waited_longest_first(file: Path) -> None:
    said = pumice("measures", file, "-o", "table")
    assert said.out.index("default/huge") < said.out.index("default/g")


def test_rows_in_a_file_are_those_of_the_json(file: Path) -> None:
    jobs = pumice("measures", file, "-o", "json").json["jobs"]
    rows = list(csv.DictReader(io.StringIO(pumice("measures", file, "--csv", "-", "-q").out)))
    assert [(row["job"], row["wait_s"]) for row in rows] == [
        (job["job"], "" if job["wait_s"] is None else f"{job['wait_s']:g}") for job in jobs
    ]


@pytest.mark.parametrize("table", ["jobs", "queues", "series"])
def test_parquet_holds_what_csv_holds(file: Path, tmp_path: Path, table: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install 'pumice[tables]'")
    said = pumice("measures", file, "--table", table, "--parquet", tmp_path / "rows.parquet")
    assert said.code == 0, said.err
    rows = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    lines = list(csv.DictReader(io.StringIO(pumice("measures", file, "--table", table, "--csv", "-", "-q").out)))
    assert len(rows) == len(lines) > 0
    for row, line in zip(rows, lines, strict=True):
        for name, value in row.items():
            assert line[name] == ("" if value is None else f"{value:.12g}" if isinstance(value, float) else str(value))


def test_json_beside_csv_is_printed_or_refused(file: Path, tmp_path: Path) -> None:
    said = pumice("measures", file, "--csv", tmp_path / "jobs.csv", "-o", "json")
    assert (said.code, said.json) == (0, pumice("measures", file, "-o", "json").json)
    assert said.json["schema"] == "measures/2"
    assert said.json["queues"]["default"]["jobs"] == len(said.json["jobs"])
    assert (tmp_path / "jobs.csv").read_text().count("\n") == 1 + len(said.json["jobs"])
    said = pumice("measures", file, "--csv", "-", "-o", "json")
    assert (said.code, "not both" in said.err) == (2, True)


def test_two_files_together_are_refused(file: Path, tmp_path: Path) -> None:
    said = pumice("measures", file, "--csv", tmp_path / "a", "--parquet", tmp_path / "b")
    assert (said.code, "exclude" in said.err) == (2, True)
    said = pumice("measures", file, "--parquet", "-")
    assert (said.code, "not written to stdout" in said.err) == (2, True)


def test_a_journal_that_is_not_there(tmp_path: Path) -> None:
    said = pumice("measures", tmp_path / "none.db")
    assert (said.code, "none.db" in said.err) == (2, True)
