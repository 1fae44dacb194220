"""`pumice bench`: small runs of every scenario, and the shape of what they report."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.proof.bench.figures import Parameters, Samples
from pumice.proof.bench.scenarios import SCENARIOS
from pumice.proof.bench.steady import PERIOD_S, measure_idling
from tests.pumice.cli.terminal import pumice

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np0,1000,1000,1,1000,P100\np1,1000,1000,1,1000,T4\n"


@pytest.mark.parametrize("scenario", ["preempt", "preemptAffinity"])
def test_preemption_decides_the_same_by_itself_and_through_workers(scenario: str) -> None:
    sizes = ("--nodes", 20, "--running", 200, "--pods", 8, "--gang", 4, "--runs", 1)
    said = pumice("bench", scenario, *sizes, "-o", "json")
    assert said.code == 0
    figures = said.json["figures"]
    assert figures["victims"]["value"] > 0
    assert figures["pooled_victims"]["min"] == figures["pooled_victims"]["max"] == figures["victims"]["value"]


@pytest.mark.parametrize(
    ("scenario", "sizes", "figures"),
    [
        ("allocate", ("--nodes", 20, "--pods", 16, "--gang", 4), {"pods_per_s", "cycle_s", "open_s", "allocate_s"}),
        (
            "steady",
            ("--nodes", 20, "--running", 200, "--pods", 8, "--gang", 4),
            {"cycle_s", "open_s", "idle_cycle_s", "first_open_s"},
        ),
        ("open", ("--nodes", 20, "--running", 200, "--gang", 4), {"open_s", "first_open_s"}),
        ("topology", ("--nodes", 50, "--pods", 16, "--gang", 8), {"search_s", "next_search_s", "open_s"}),
        (
            "preempt",
            ("--nodes", 20, "--running", 200, "--pods", 8, "--gang", 4),
            {"open_s", "preemptor_s", "pooled_preemptor_s"},
        ),
    ],
)
def test_scenarios(scenario: str, sizes: tuple[object, ...], figures: set[str]) -> None:
    said = pumice("bench", scenario, *sizes, "--runs", 2, "-o", "json")
    assert said.code == 0
    assert said.json["scenario"] == scenario
    assert figures <= set(said.json["figures"])
    assert said.json["calibration_s"] > 0
    assert said.json["peak_rss_bytes"] > 10_000_000
    figure = said.json["figures"]["open_s"]
    assert figure["min"] <= figure["value"] <= figure["max"]
    assert (figure["unit"], figure["runs"]) == ("s", 2)


@pytest.mark.slow
def test_a_day_of_the_gate_is_the_same_each_time() -> None:
    said = pumice("bench", "gate", "--nodes", 2, "--pods", 186, "--runs", 2, "-o", "json")
    assert said.code == 0, said.err
    figures = said.json["figures"]
    assert (figures["jobs"]["value"], figures["jobs"]["unit"]) == (30, "jobs")
    assert figures["base_s"]["value"] > 0 < figures["head_s"]["value"]


@pytest.mark.slow
def test_simulated_jobs_all_end_faster_than_in_real_time() -> None:
    said = pumice("bench", "simulate", "--nodes", 4, "--pods", 20, "--gang", 2, "--runs", 2, "-o", "json")
    assert said.code == 0
    figures = said.json["figures"]
    assert figures["jobs"]["value"] > 0
    assert figures["speed"]["value"] > 1
    assert figures["cycles"]["min"] == figures["cycles"]["max"] > 0


def test_preemption_where_few_may_be_evicted() -> None:
    """Two nodes of two hundred, with room for eight preemptors; one gang of two comes to nothing."""
    sizes = ("--nodes", 200, "--running", 2000, "--pods", 16, "--gang", 8, "--runs", 1)
    said = pumice("bench", "preemptFew", *sizes, "-o", "json")
    assert said.code == 0
    assert said.json["figures"]["victims"]["value"] == 20
    assert "pooled_victims" not in said.json["figures"]


def test_allocate_binds_everything() -> None:
    said = pumice("bench", "allocate", "--nodes", 20, "--pods", 16, "--gang", 4, "--runs", 1, "-o", "json")
    assert said.json["figures"]["bound"]["value"] == 16
    assert said.json["parameters"] == {"nodes": 20, "pods": 16, "gang": 4, "runs": 1}


def test_openb_binds_what_fits(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text(NODES)
    (tmp_path / "p.csv").write_text(PODS)
    trace = f"openb:{tmp_path / 'n.csv'},{tmp_path / 'p.csv'}"
    said = pumice("bench", "openb", "-f", trace, "--runs", 1, "-o", "json")
    assert said.json["figures"]["bound"]["value"] == 1  # nobody has a T4


def test_a_table_for_a_person() -> None:
    said = pumice("bench", "allocate", "--nodes", 5, "--pods", 4, "--gang", 2, "--runs", 1, "-o", "table")
    assert "pods_per_s" in said.out
    assert "calibration" in said.out


def test_a_gang_that_nobody_named_is_no_greater_than_there_are_pods() -> None:
    said = pumice("bench", "allocate", "--nodes", 2, "--pods", 1, "--runs", 1, "-o", "json")
    assert (said.code, said.json["parameters"]["gang"]) == (0, 1)
    assert pumice("bench", "allocate", "--nodes", 2, "--pods", 1, "--gang", 2, "--runs", 1).code == 2


SIZES = ("nodes", "pods", "gang", "running", "queues")
ONE = dict.fromkeys(SIZES, 1)
ODD = {"nodes": 31, "pods": 9, "gang": 4, "running": 7, "queues": 3}


QUICK = ("topology", "spread", "openb")
"""The others are measured above, or slow."""


def sized(scenario: str) -> list[str]:
    """The sizes that a scenario has."""
    return [name for name in SIZES if getattr(SCENARIOS[scenario].defaults, name)]


@pytest.mark.parametrize(
    ("scenario", "sizes"),
    [
        pytest.param(name, sizes, marks=() if name in QUICK else pytest.mark.slow, id=f"{name}-{which}")
        for name in SCENARIOS
        for which, sizes in (("one", ONE), ("odd", ODD))
        if which == "one" or sized(name)  # without sizes both are the same run
    ],
)
def test_every_scenario_runs_small_and_odd(scenario: str, sizes: dict[str, int], tmp_path: Path) -> None:
    arguments: list[object] = ["--runs", 1]
    for name in sized(scenario):
        arguments += [f"--{name}", sizes[name]]
    if scenario == "openb":
        (tmp_path / "n.csv").write_text(NODES)
        (tmp_path / "p.csv").write_text(PODS)
        arguments += ["-f", f"openb:{tmp_path / 'n.csv'},{tmp_path / 'p.csv'}"]
    said = pumice("bench", scenario, *arguments, "-o", "json")
    assert said.code == 0, said.err
    assert said.json["figures"]


def test_the_trace_is_to_be_named() -> None:
    said = pumice("bench", "openb", "--runs", 1)
    assert (said.code, said.out) == (2, "")
    assert "-f openb:NODES.csv,PODS.csv" in said.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fly",), "unknown scenario 'fly'"),
        (("allocate", "--running", 5), "--running"),
        *(
            ((name, "--nodes", 1, "--pods", 4, "--gang", 900_000), "--gang")
            for name in ("allocate", "steady", "topology", "spread", "pipeline", "preempt", "replay")
        ),
        (("allocate", "--runs", 0), "--runs"),
    ],
)
def test_usage_errors(arguments: tuple[object, ...], words: str) -> None:
    said = pumice("bench", *arguments)
    assert (said.code, said.out) == (2, "")
    assert words in said.err


def test_idling_is_measured_on_the_running_system() -> None:
    samples = Samples()
    measure_idling(Parameters(nodes=4, running=8, gang=4, runs=2), samples)
    figures = samples.values["idle_cycle_s"]
    assert len(figures) == 2
    assert all(1e-6 < figure < PERIOD_S for figure in figures)  # a comparison alone would take less
