"""`pumice run --faults`: what struck and what did not hold is shown, and what cannot happen here is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pumice.cli import run
from pumice.runtime.main_job import RunOutcome, RunPlan, run_plan
from pumice.runtime.summary import BrokenInvariant
from tests.pumice.cli.terminal import pumice

VIRTUAL = ("--time", "virtual", "--until", "idle")


def found_one(plan: RunPlan) -> None:
    assert plan.storm is not None
    plan.storm.monitor.violated("one-node", "it [moved]")


def test_a_table_of_what_struck(tmp_path: Path) -> None:
    said = pumice("run", "--db", tmp_path / "p.db", *VIRTUAL, "--faults", "live", "-o", "table")
    assert said.code == 0
    assert "watch-broken" in said.out
    assert "everything held" in said.out
    assert "in simulation only" not in said.err


def test_no_storm_no_word_of_it(tmp_path: Path) -> None:
    assert "everything held" not in pumice("run", "--db", tmp_path / "p.db", *VIRTUAL, "-o", "table").out


@pytest.mark.parametrize("interrupted", [True, False])
def test_violations_are_shown_and_are_the_exit_code(
    interrupted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(plan: RunPlan, watching: Any) -> RunOutcome:
        outcome = run_plan(plan, watching)
        outcome.summary.violations = [BrokenInvariant("one-node", "it [moved]")]
        outcome.interrupted = interrupted
        return outcome

    monkeypatch.setattr(run, "run_plan", broken)
    said = pumice("run", "--db", tmp_path / "p.db", *VIRTUAL, "--faults", "calm", "-o", "table")
    assert said.code == 1
    assert "one-node: it [moved]" in said.out
    assert "everything held" not in said.out


@pytest.mark.parametrize("broken", [True, False])
def test_a_second_ctrl_c_hides_nothing(broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(plan: RunPlan, _: Any) -> RunOutcome:
        if broken:
            found_one(plan)
        raise BaseExceptionGroup("tasks", [KeyboardInterrupt()])

    monkeypatch.setattr(run, "run_plan", interrupted)
    said = pumice("run", "--db", tmp_path / "p.db", *VIRTUAL, "--faults", "live", "-o", "table")
    assert said.code == (1 if broken else 130)
    assert ("one-node: it [moved]" in said.out) == broken


def test_what_ends_the_process_is_said_beside_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(plan: RunPlan, _: Any) -> RunOutcome:
        found_one(plan)
        raise OSError("the disk is full")

    monkeypatch.setattr(run, "run_plan", dies)
    said = pumice("run", "--db", tmp_path / "p.db", *VIRTUAL, "--faults", "live", "-o", "table")
    assert said.code == 3
    assert "one-node" in said.out
    assert "the disk is full" in said.err


def test_what_is_simulated_only_is_named(tmp_path: Path) -> None:
    said = pumice("run", "--db", tmp_path / "p.db", *VIRTUAL, "--faults", "journal", "-o", "table")
    assert said.code == 0
    assert "in simulation only: journal-failing, journal-unsure, journal-torn, power-cut" in said.err.replace("\n", " ")


def test_a_profile_with_nothing_for_the_real_clock_is_refused(tmp_path: Path) -> None:
    said = pumice("run", "--db", tmp_path / "p.db", *VIRTUAL, "--faults", "clock")
    assert (said.code, said.out) == (2, "")
    assert "--faults: clock has nothing for the real clock, in simulation only: clock-jump" in said.err
    assert list(tmp_path.iterdir()) == []


def test_the_help_names_the_profiles() -> None:
    out = " ".join(pumice("run", "-h", env={"COLUMNS": "300"}).out.split())
    assert "joined by +: calm, binds, evictions" in out
