"""The experiment in examples/fgd: a trace of one's own, and published runs to the second decimal."""

from __future__ import annotations

import csv
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer

from examples.fgd import compare, experiment, plot
from pumice.errors import InputError
from pumice.load.openb import OpenbRow
from pumice.load.source import read_text
from pumice.questions.sweep.sweep import sweep
from tests.kit import source

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from typing import Any

    from pumice.questions.sweep.sweep import Swept

TRACES = source.SHARED / "traces" / "openb"
beside = pytest.mark.skipif(not TRACES.exists(), reason="the openb trace is not beside the repository")
PAPER = ["02-DotProd", "03-GpuClustering", "04-GpuPacking", "05-BestFit", "06-FGD"]
NODES = "sn,cpu_milli,memory_mib,gpu,model\na,32000,65536,2,T4\nb,32000,65536,1,T4\nc,32000,65536,1,P100\n"
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec
half,1000,1024,1,500,
whole,1000,1024,1,1000,P100
pair,1001,1024,2,1000,
"""


def traces() -> list[str]:
    """Those on which all published runs are to come out; `nox -s published` asks for all."""
    said = os.environ.get("PUMICE_TEST_TRACES", "multigpu50")
    return (
        sorted(path.name.split(".")[0] for path in (TRACES / "orders").glob("*")) if said == "all" else said.split(",")
    )


def executors() -> AbstractContextManager[Executor]:
    return ThreadPoolExecutor(1)


def swept(traces: Path, results: Path, policies: list[str], names: list[str], seeds: list[int]) -> Swept:
    spec = experiment.spec_of(traces, traces / "orders", policies, names, seeds)
    return sweep(spec, results, executors, work=experiment.one_run)


@pytest.fixture
def little(tmp_path: Path) -> Path:
    """Four GPUs. First come two halves, which spread or share; then a pair; then what wants the P100."""
    (tmp_path / "orders").mkdir()
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(NODES)
    (tmp_path / "openb_pod_list_little.csv").write_text(PODS)
    order = "openb_pod_list_little 7 pods 0 0 2 1\nopenb_pod_list_little 7 nodes 0 1 2\n"
    (tmp_path / "orders" / "little.txt").write_text(order)
    return tmp_path


def at_the_end(found: dict[str, Any]) -> float | None:
    return next((float(value) for x, value in reversed(found.items()) if x.isdigit() and value is not None), None)


def test_a_run_is_a_row_and_is_not_run_again(little: Path) -> None:
    found = swept(little, little / "results", ["05-BestFit", "06-FGD"], [], [])
    assert [(row["workload"], row["sc_policy"], row["tune"], row["seed"]) for row in found.rows] == [
        ("openb_pod_list_little", "05-BestFit", 1.3, 7),
        ("openb_pod_list_little", "06-FGD", 1.3, 7),
    ]
    first, second = found.rows
    assert [first["total_gpus"], first["12"], first["25"], first["75"], first["100"]] == [4, 12.5, 25.0, 75.0, 100.0]
    assert set(experiment.COLUMNS) <= first.keys()
    assert at_the_end(second) == 100.0
    assert (found.fresh, swept(little, little / "results", ["05-BestFit", "06-FGD"], [], []).fresh) == (2, 0)


def test_what_must_lie_on_one_node_may_be_a_gang(little: Path) -> None:
    """Volcano's own default spreads the halves over two nodes, and the pair finds no node with two free GPUs."""
    order = "openb_pod_list_little 7 pods 0 0 2\nopenb_pod_list_little 7 nodes 0 1 2\n"
    (little / "orders" / "little.txt").write_text(order)
    whole, parted = swept(little, little / "results", ["volcano", "volcano+gangs"], [], []).rows
    assert (whole["75"], parted["75"]) == (25.0, 75.0)


def test_a_gang_is_placed_as_a_whole_or_not_at_all(little: Path) -> None:
    order = "openb_pod_list_little 7 pods 2 1 2 0\nopenb_pod_list_little 7 nodes 0 1 2\n"
    (little / "orders" / "little.txt").write_text(order)
    (row,) = swept(little, little / "results", ["06-FGD+gangs"], [], []).rows
    assert (row["50"], row["75"], row["125"], row["129"]) == (50.0, 75.0, 75.0, None)
    assert row["130"] is None


def test_the_parts_of_a_pod_ask_for_no_less_together() -> None:
    row = OpenbRow({"cpu_milli": "1001", "memory_mib": "1024", "num_gpu": "2"}, Path("pods"), 2)
    parts = experiment.workers_of(row)
    assert [(part.number("cpu_milli"), part.number("memory_mib"), part.number("num_gpu")) for part in parts] == [
        (501, 512, 1),
        (501, 512, 1),
    ]


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("little 7 pods 0 1\n", "expected lines for pods and nodes of seed 7"),
        ("little 7 pods 0 one\n", "expected TRACE SEED pods|nodes ROW ROW"),
        ("little 7 pods 0 9\nlittle 7 nodes 0 1 2\n", "expected rows below 3, found 9"),
    ],
)
def test_an_order_that_is_none_is_refused(little: Path, order: str, said: str) -> None:
    (little / "orders" / "little.txt").write_text(order)
    with pytest.raises(InputError, match=said.replace("|", r"\|")):
        swept(little, little / "results", ["05-BestFit"], [], [])


def test_tables_are_compared_and_drawn(little: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = experiment.COLUMNS
    mine = dict.fromkeys(columns, "90.0") | {"workload": "w", "sc_policy": "p", "tune": "1.3", "seed": "42"}
    near, far = mine | {"130": "90.01"}, mine | {"130": "90.02"}
    tables = {name: little / f"{name}.csv" for name in ("mine", "near", "far")}
    for row, path in zip((mine, near, far), tables.values(), strict=True):
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, columns)
            table.writeheader()
            table.writerow(row)
    assert compare.distances(mine, near)["130"] == 1
    for other, code in (("near", 0), ("far", 1)):
        with pytest.raises(typer.Exit) as ended:
            compare.main(tables["mine"], tables[other])
        assert ended.value.exit_code == code
    said = capsys.readouterr().out
    assert "p | 1 | 0 | 131 | 130 | 1 | 0 | 0.01" in said
    assert "w p seed 42 at 130: 0.02" in said
    with pytest.raises(typer.Exit):
        plot.main([tables["mine"]], little / "plot.svg", "w")
    assert (little / "plot.svg").read_text().startswith("<svg")


def furthest(tmp_path: Path, policy: str, trace: str, seed: int) -> int:
    """How many hundredths of a per cent a run is away from the published one where they differ most."""
    (row,) = swept(TRACES, tmp_path, [policy], [trace], [seed]).rows
    theirs = compare.table_of(TRACES / "analysis_allo_discrete.csv.gz")[row["workload"], policy, "1.3", str(seed)]
    return max(compare.distances({name: str(row[name]) for name in compare.CURVE}, theirs).values())


@pytest.mark.slow
@beside
def test_a_published_run_of_fgd_comes_out(tmp_path: Path) -> None:
    """6,361 pods, which takes two seconds: where little has arrived all policies give the same."""
    assert furthest(tmp_path, "06-FGD", "multigpu50", 42) <= compare.NEAR


@beside
@pytest.mark.slow
@pytest.mark.parametrize("seed", [int(seed) for seed in os.environ.get("PUMICE_TEST_SEEDS", "42").split(",")])
@pytest.mark.parametrize("trace", traces())
@pytest.mark.parametrize("policy", PAPER)
def test_published_runs_come_out(tmp_path: Path, policy: str, trace: str, seed: int) -> None:
    assert furthest(tmp_path, policy, trace, seed) <= compare.NEAR


def test_every_policy_of_the_paper_has_a_configuration() -> None:
    assert sorted(path.stem for path in experiment.HERE.glob("0*.conf")) == PAPER
    assert all("allocate" in read_text(path) for path in experiment.HERE.glob("*.conf"))
