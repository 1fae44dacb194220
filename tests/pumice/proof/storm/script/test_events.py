"""Lists of events as files: what was written reads again, and what no storm can be made of is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pumice.actors.api_server.faults.strikes import KINDS
from pumice.config.errors import ConfigError
from pumice.proof.storm.script.checking import HAPPENINGS
from pumice.proof.storm.script.events import Event, Script, read_script, write_script
from pumice.proof.storm.script.profiles import profiles
from pumice.proof.storm.script.shrink import simpler_events, written_out
from pumice.proof.storm.script.workload import Size
from pumice.proof.storm.simulation import StormOutcome
from pumice.proof.storm.stress import StressPlan, script_of
from tests.pumice.cli.terminal import pumice

NODE = {"what": "node", "target": "n0", "details": {"cpu": 8, "memory": "16Gi"}}
JOB = {"what": "job", "target": "j0", "details": {"pods": 2, "cpu": "1"}}
BIND = {"what": "bind-lost", "on": "bind default/j0-0 #1"}


def said(tmp_path: Path, *events: Any, **more: Any) -> str:
    """What is wrong with a file of these events, without the file's name; "" when it is a storm."""
    path = tmp_path / "storm.json"
    path.write_text(json.dumps({"seed": 1, "events": list(events)} | more))
    try:
        read_script(path)
    except ConfigError as error:
        return str(error).removeprefix(f"{path}: ")
    return ""


@pytest.mark.parametrize("name", profiles())
def test_storms_read_again_whole_cut_down_and_made_smaller(name: str, tmp_path: Path) -> None:
    path = tmp_path / "storm.json"
    for seed in range(5):
        script = script_of(seed, StressPlan(name, size=Size(4, 40)))
        struck = [Event("bind-delayed", on="bind default/j1-0 #1", amount=0.5), Event("journal-slow", on="append #3")]
        cut = written_out(script, StormOutcome(struck=struck))
        some = msgspec.structs.replace(cut, events=cut.events[7:])
        smaller = [plain for event in cut.events for plain in simpler_events(event)]
        for each in (script, cut, some, msgspec.structs.replace(cut, events=tuple(smaller))):
            write_script(each, path)
            assert read_script(path) == each
    assert json.loads(path.read_text())["version"] == 1


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            {"what": "cordn", "target": "n0"},
            "events[1].what: unknown event 'cordn', did you mean 'cordon'?",
        ),
        (
            {"what": "bind-lost"},
            "events[1].on: expected an occasion of bind-lost such as 'bind default/j1-0 #2', was ''",
        ),
        ({"what": "bind-lost", "on": "watch Node+Pod #1"}, "events[1].on: expected an occasion of bind-lost such as"),
        ({"what": "crash", "on": "bind d/j #0", "target": "cache"}, "events[1].on: expected an occasion of crash"),
        (BIND | {"amount": -1}, "events[1].amount: expected a number from 0, was -1"),
        (BIND | {"details": {"a": 1}}, "events[1].details.a: unknown key 'a'; there is none"),
        (
            {"what": "crash", "on": "bind d/j #1", "target": "cach"},
            "events[1].target: unknown actor 'cach', did you mean",
        ),
        (
            {"what": "cordon", "on": "bind d/j #1", "target": "n0"},
            "events[1].on: expected no occasion: cordon is not a fault",
        ),
        ({"what": "cordon"}, "events[1].target: expected the name of a node, was ''"),
        (
            {"what": "delete-job", "target": "n0"},
            "events[1].target: expected the name of a job or vcjob, 'n0' is a node",
        ),
        ({"what": "node", "target": "n", "details": {"cpu": 1}}, "events[1].details.memory: expected a quantity"),
        (
            {"what": "node", "target": "n", "details": {"cpu": "lots", "memory": 1}},
            "events[1].details.cpu: expected a q",
        ),
        (
            {"what": "job", "target": "j"},
            "events[1].details.pods: expected a whole number from 1 to 10000, was nothing",
        ),
        (
            {"what": "vcjob", "target": "j", "details": {"pods": 0}},
            "events[1].details.pods: expected a whole number from 1",
        ),
        (
            {"what": "job", "target": "j", "details": {"pods": 99999999}},
            "events[1].details.pods: expected a whole number from 1 to 10000, was 99999999",
        ),
        ({"what": "job", "target": "j", "details": {"pods": True}}, "events[1].details.pods: expected a whole number"),
        (
            {"what": "job", "target": "j", "details": {"pods": 1, "pod": 2}},
            "events[1].details.pod: unknown key 'pod'",
        ),
        (
            {"what": "job", "target": "j", "details": {"pods": 1, "devices": 3}},
            "events[1].details.devices: expected a w",
        ),
        (
            {"what": "queue", "target": "q", "details": {"capability": {"cpu": "x"}}},
            "events[1].details.capability.cpu: exp",
        ),
        ({"what": "budget", "target": "j"}, "events[1].amount: expected a whole number from 1, was 0.0"),
        (
            {"what": "scale-up", "target": "j", "amount": 1.5},
            "events[1].amount: expected a whole number from 1 to 10000, was 1.5",
        ),
        ({"what": "clock-jump"}, "events[1].amount: expected seconds, not 0, was 0.0"),
        ({"what": "power-cut", "at": -1}, "events[1].at: expected a number from 0, was -1"),
        ({"what": "power-cut", "at": "x"}, "events[1].at: expected a number from 0, was 'x'"),
        ({"what": "power-cut", "att": 1}, "events[1].att: unknown key 'att', did you mean 'at'?"),
        (7, "events[1]: expected a mapping, was 7"),
    ],
)
def test_an_event_that_cannot_be_is_refused(event: Any, words: str, tmp_path: Path) -> None:
    assert said(tmp_path, NODE, event).startswith(words)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"perod_s": 1}, "perod_s: unknown key 'perod_s', did you mean 'period_s'?"),
        ({"period_s": 0}, "period_s: expected seconds, more than 0, was 0"),
        ({"faults_end_s": -1}, "faults_end_s: expected a number from 0, was -1"),
        ({"news_delay_s": -0.1}, "news_delay_s: expected a number from 0, was -0.1"),
        ({"seed": -1}, "seed: expected a whole number from 0, was -1"),
        ({"rates": {"bind-lots": 0.1}}, "rates: unknown fault 'bind-lots', did you mean"),
        ({"rates": {"bind-lost": 2}}, "rates.bind-lost: expected a number from 0 to 1, was 2"),
        ({"rates": {"bind-lost": 0.1}}, "rates: expected no rates beside listed faults (events[2]), found bind-lost"),
        ({"profile": 7}, "profile: expected a text, was 7"),
        ({"config": "actions: nothing"}, "config:1: actions"),
        ({"version": 2, "events": {"other": "shape"}, "new": 1}, "version: version 2, this release knows 1"),
        ({"version": "1"}, "version: expected a version from 1 to 1, was '1'"),
        ({"events": {}}, "events: expected a list, was a mapping"),
        ({"events": [BIND, BIND]}, "events[1].on: expected one fault at an occasion, found"),
    ],
)
def test_a_storm_that_cannot_be_is_refused(more: Any, words: str, tmp_path: Path) -> None:
    assert said(tmp_path, NODE, JOB, BIND, **more).startswith(words)


def test_a_storm_does_not_need_the_profile_that_it_came_from(tmp_path: Path) -> None:
    assert said(tmp_path, NODE, profile="of somebody's own") == ""


def test_known_kinds_are_told_and_unknown_targets_may_have_been_cut_away(tmp_path: Path) -> None:
    words = said(tmp_path, {"what": "earthquake"})
    assert all(kind in words for kind in (*HAPPENINGS, *KINDS))
    assert said(tmp_path, {"what": "cordon", "target": "n7"}, {"what": "scale-up", "target": "j", "amount": 1}) == ""


ALONE = "expected nothing of the kind beside --events: it is one storm as it stands"


@pytest.mark.parametrize(("text", "words"), [(b"{", "not JSON"), (b"\xff", "not JSON"), (b"[]", "expected a storm")])
def test_what_is_no_storm_is_refused(text: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "storm.json"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match=f"storm.json: {words}"):
        read_script(path)


def test_the_command_ends_with_2_and_one_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({"seed": 1, "events": [{"what": "cordon"}]}))
    for path, words in (
        (bad, "events[0].target"),
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "none.json", "does not exist"),
    ):
        result = pumice("stress", "--events", path)
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert f"{path}: {words}" in result.err


@pytest.mark.parametrize(
    "option", ["--profile", "--profiles", "--seeds", "--seed", "--nodes", "--pods", "--workers", "--into"]
)
def test_a_file_of_events_goes_with_no_choice_of_storms(option: str, tmp_path: Path) -> None:
    """Ten seeds beside it were one storm, and nobody was told."""
    write_script(Script(3), tmp_path / "storm.json")
    result = pumice("stress", "--events", tmp_path / "storm.json", option, "1")
    assert (result.code, result.err) == (2, f"pumice: {option}: {ALONE}\n")


def test_version_is_written_even_for_the_least_storm(tmp_path: Path) -> None:
    write_script(Script(3), tmp_path / "storm.json")
    assert json.loads((tmp_path / "storm.json").read_text()) == {"version": 1, "seed": 3, "rates": {}}
