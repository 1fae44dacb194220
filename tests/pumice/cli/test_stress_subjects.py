"""`pumice stress --subject`: what is refused before the first storm, and what a subject is told off for."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.kit.source import ROOT
from tests.pumice.cli.terminal import pumice

TINY = ROOT / "tests" / "pumice" / "proof" / "strangers" / "tiny_scheduler.py"
NODE = {"what": "node", "target": "n0", "details": {"cpu": 4, "memory": "8Gi"}}
OTHERS = {
    "what": "pods",
    "at": 1,
    "target": "o",
    "details": {"pods": 1, "cpu": "1", "scheduler": "scheduler-of-others"},
}


def tiny(defect: str = "") -> str:
    return shlex.join((sys.executable, str(TINY), *([defect] if defect else [])))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--subject", "/no/such/scheduler"], "--subject: no program '/no/such/scheduler'"),
        (["--subject", ""], "--subject: expected a command"),
        (["--subject", tiny(), "--judges", "borg"], "unknown profile of a subject 'borg'"),
        (["--subject", tiny(), "--into", "/no/such/folder"], "--into: /no/such/folder is not a folder"),
        (["--subject", tiny(), "--profile", "nothing"], "unknown fault profile for clients 'nothing'"),
        (["--subject", tiny(), "--profiles", "mine.yaml"], "--profiles: says nothing of subjects"),
        (["--subject", tiny(), "--events", "/no/such/file"], "/no/such/file"),
        (["--subject", tiny(), "--workload", "calm"], "--workload: unknown workload 'calm'"),
        (["--workload", "preempting"], "--workload: is about subjects"),
        (["--lockstep"], "--lockstep: is about subjects: it needs --subject"),
        (["--tries", "5"], "--tries: is about subjects"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: list[str], problem: str) -> None:
    done = pumice("stress", *options)
    assert done.code == 2
    assert problem in done.err
    assert "Traceback" not in done.err


@pytest.mark.slow
def test_a_subject_that_ends_at_once_or_says_nothing_is_an_error_of_the_command(tmp_path: Path) -> None:
    for code, problem in (("import sys; sys.exit('no such flag')", "no such flag"), ("", "ended with exit code 0")):
        command = shlex.join((sys.executable, "-c", code))
        done = pumice("stress", "--subject", command, "--seeds", "1", "--into", str(tmp_path))
        assert done.code == 3
        assert problem in done.err
        assert "Traceback" not in done.err


@pytest.mark.slow
def test_a_written_storm_is_run_again_as_often_as_asked(tmp_path: Path) -> None:
    path = tmp_path / "storm.json"
    path.write_text(json.dumps({"seed": 1, "lockstep": True, "invariant": "own-pods", "events": [NODE, OTHERS]}))
    for defect, code, shown in (("takes-foreign", 1, 2), ("", 0, 0)):
        done = pumice("stress", "--subject", tiny(defect), "--events", str(path), "--tries", "2", "-o", "json")
        told = done.json
        assert (done.code, told["seeds"]) == (code, 2), done.err
        assert [(each["invariant"], each["shown"]) for each in told["violations"]] == (
            [("own-pods", 2)] if shown else []
        )
