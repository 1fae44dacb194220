"""Storms for strangers as data: drawn from a seed, written, read, and refused with the place of what is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pumice.config.errors import ConfigError
from pumice.proof.storm.script.events import Event, write_script
from pumice.proof.storm.script.workload import Size
from pumice.proof.strangers.judges.panel import SUBJECTS, promise_of
from pumice.proof.strangers.script import FAULT, JOBS, StrangerScript, is_fault, read_stranger_script
from pumice.proof.strangers.workload import PREEMPTING, WORKLOADS, storm_of
from tests.kit.source import ROOT


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("judges", SUBJECTS)
def test_a_storm_follows_from_its_seed_and_is_read_as_written(judges: str, workload: str, tmp_path: Path) -> None:
    path, faults = tmp_path / "storm.json", set[str]()
    for seed in range(60):
        script = storm_of(seed, Size(4, 20), judges, lockstep=seed % 2 == 1, workload=workload)
        assert script == storm_of(seed, Size(4, 20), judges, lockstep=seed % 2 == 1, workload=workload)
        faults |= {rule.fault for rule in script.rules}
        write_script(script, path)
        assert read_stranger_script(path) == script
    assert len(faults) > 7


def test_faults_can_be_left_to_the_caller() -> None:
    assert not any(is_fault(event) for event in storm_of(1, Size(4, 20), "volcano", drawn=False).events)


def test_in_lockstep_no_pod_ends_by_itself() -> None:
    events = [event for seed in range(30) for event in storm_of(seed, Size(4, 20), "volcano", lockstep=True).events]
    assert not any(event.details.get("seconds") or event.what == "vcjob" for event in events)


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        ({"what": "earthquake"}, "events[0].what"),
        ({"what": "clock-jump", "amount": 3}, "events[0].what"),
        ({"what": "node", "target": "n0", "details": {"cpu": "x", "memory": "1Gi"}}, "events[0].details"),
        ({"what": "scale-down"}, "events[0].target"),
        ({"what": FAULT, "details": {"fault": "explode"}}, "events[0].details.fault"),
        ({"what": FAULT, "details": {"fault": "refuse", "code": 418}}, "events[0].details.code"),
    ],
)
def test_an_event_that_is_not_valid_is_named(event: dict[str, Any], problem: str, tmp_path: Path) -> None:
    path = tmp_path / "storm.json"
    path.write_bytes(msgspec.json.encode({"seed": 1, "events": [event]}))
    with pytest.raises(ConfigError) as refused:
        read_stranger_script(path)
    assert problem in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_file_that_is_no_storm_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "storm.json"
    for text in ("[]", "{", '{"seed": -1}', '{"seed": 1, "judges": "nobody"}', '{"seed": 1, "version": 9}'):
        path.write_text(text)
        with pytest.raises(ConfigError):
            read_stranger_script(path)
    with pytest.raises(ConfigError):
        read_stranger_script(tmp_path / "none.json")


def test_rules_have_names_of_their_own() -> None:
    fault = Event(FAULT, details={"fault": "refuse"})
    assert [rule.rule for rule in StrangerScript(seed=0, events=(fault, fault)).rules] == ["refuse-1", "refuse-2"]


@pytest.mark.parametrize(("judges", "scheduler"), [("volcano", None), ("kai", "kai-scheduler")])
def test_pods_that_preempt_have_priorities_and_ports(judges: str, scheduler: str | None) -> None:
    events = [each for seed in range(30) for each in storm_of(seed, Size(4, 30), judges, workload=PREEMPTING).events]
    mine = [each for each in events if each.what in ("pods", *JOBS) and not each.target.startswith("others")]
    assert {each.details.get("priority") for each in mine} == {"high", "low", None}
    assert any("port" in each.details and "cpu" not in each.details for each in mine)
    assert {each.details.get("scheduler") for each in mine} == {scheduler}
    assert {"replace-node", "priority"} <= {each.what for each in events}
    plain = storm_of(1, Size(4, 30), judges, workload=PREEMPTING, drawn=False).events
    assert not any(is_fault(event) for event in plain)


def test_every_input_that_is_written_up_can_be_run(tmp_path: Path) -> None:
    inputs = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "found.md").read_text("utf-8"), re.DOTALL)
    assert len(inputs) >= 10
    for number, text in enumerate(inputs):
        path = tmp_path / f"{number}.json"
        path.write_text(text, "utf-8")
        assert promise_of(read_stranger_script(path).invariant).startswith("https://")
