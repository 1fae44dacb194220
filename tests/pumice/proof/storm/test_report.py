"""What is told of storms that broke something: the events it takes, in a file that was run before it is named."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pumice.cli.stress import MOST_LINES, lines_of
from pumice.proof.storm.invariants.upheld import Violation
from pumice.proof.storm.report import SHRUNK, TRIED, BrokenStorm, line_of, report
from pumice.proof.storm.script.events import Event, Script, read_script
from pumice.proof.storm.script.shrink import shrink
from pumice.proof.storm.script.workload import Size
from pumice.proof.storm.simulation import StormOutcome, simulate
from pumice.proof.storm.stress import StressPlan, Tally, script_of
from tests.simulation.planted import BUGS

ROOM = {"cpu": "4", "memory": "8Gi", "pods": 9}
NODES = tuple(Event("node", target=f"n{number}", details=ROOM) for number in range(60))
STRUCK = [Event("bind-lost", on="bind default/j1-0 #1")]
Breaks = Callable[[Script], bool]


def reported(breaks: Breaks, folder: Path, monkeypatch: pytest.MonkeyPatch, storms: int = 1) -> list[BrokenStorm]:
    """Of storms that are a line of Python; how many events there were is in their words."""

    def simulated(script: Script) -> StormOutcome:
        words = f"seen with {len(script.events)} events"
        return StormOutcome([Violation("one-node", words)] if breaks(script) else [])

    monkeypatch.setattr("pumice.proof.storm.report.simulate", simulated)
    monkeypatch.setattr("pumice.proof.storm.report.shrink", partial(shrink, simulate=simulated))
    tally = Tally()
    for seed in range(7, 7 + storms):
        script = Script(seed, NODES, {"bind-lost": 0.1}, profile="binds+watches")
        tally.add(script, StormOutcome([Violation("one-node", "seen at first")], struck=STRUCK))
    return report(tally, 1.0, folder).violations


def file_of(one: BrokenStorm) -> Path:
    assert one.events_file is not None
    return Path(one.events_file)


def test_the_few_events_are_told_with_what_they_break(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = reported(lambda script: NODES[3] in script.events, tmp_path, monkeypatch)
    assert one.event_list == [NODES[3]]
    assert (one.events, one.message, one.reproduces) == (1, "seen with 1 events", True)
    assert lines_of(one) == [
        "seed 7: one-node: seen with 1 events",
        "    1 events",
        "        at 0 s: node n3 cpu=4 memory=8Gi pods=9",
        f"    again (tried, and it breaks): pumice stress --events {tmp_path}/storm-binds+watches-7.json",
    ]


def test_the_file_has_the_seed_that_is_told_and_the_order_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fewer events the order is another one: here it must be the third."""
    (one,) = reported(lambda script: len(script.events) > 30 or script.order == 3, tmp_path, monkeypatch)
    script = read_script(file_of(one))
    assert (one.seed, script.seed, script.order, one.reproduces) == (7, 7, 3, True)
    assert list(script.events) == one.event_list


def test_what_shows_by_its_rates_only_is_written_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = reported(lambda script: bool(script.rates), tmp_path, monkeypatch)
    assert (one.reproduces, one.event_list, one.message) == (True, None, "seen with 60 events")
    assert read_script(file_of(one)).rates == {"bind-lost": 0.1}


def test_what_does_not_show_again_is_said_not_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = reported(lambda _: False, tmp_path, monkeypatch)
    assert (one.reproduces, one.message) == (False, "seen at first")
    assert lines_of(one)[-1].startswith("    again (tried, and it did NOT break): ")


def test_those_that_are_not_cut_down_are_tried_too_within_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = reported(lambda script: NODES[3] in script.events, tmp_path, monkeypatch, TRIED + 1)
    assert [one.events for one in found] == [1] * SHRUNK + [61] * (TRIED + 1 - SHRUNK)
    assert [one.reproduces for one in found] == [True] * TRIED + [None]
    assert "(not tried)" in lines_of(found[-1])[-1]


def test_profiles_have_files_of_their_own(tmp_path: Path) -> None:
    tally = Tally(interrupted=True)
    for name in ("half", "storm"):
        tally.add(Script(7, profile=name), StormOutcome([Violation("one-node", "it moved")]))
    report(tally, 1.0, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["storm-half-7.json", "storm-storm-7.json"]


def test_long_lists_are_cut_short_in_tables() -> None:
    one = BrokenStorm(
        seed=1,
        invariant="one-node",
        message="",
        events=60,
        event_list=list(NODES),
        reproduces=True,
        events_file=None,
        file_error=None,
        command="again",
    )
    lines = lines_of(one)
    assert len(lines) == MOST_LINES + 4
    assert lines[-2] == "        … and 20 more"


def test_an_event_is_a_line() -> None:
    assert line_of(Event("clock-jump", at=2.5, amount=-3.0)) == "at 2.5 s: clock-jump -3"
    assert line_of(Event("bind-delayed", on="bind default/j1-0 #2", amount=1.5)) == (
        "on bind default/j1-0 #2: bind-delayed 1.5"
    )
    assert line_of(Event("job", target="j1", details={"pods": 2, "min": 1})) == "at 0 s: job j1 pods=2 min=1"


@pytest.mark.slow
def test_a_real_finding_is_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = BUGS["a new cache does not count binds in flight"]
    bug.plant(monkeypatch)
    monkeypatch.setattr("pumice.proof.storm.report.RUNS", 20)
    tally, seed = Tally(), 0
    while not tally.failures:
        script = script_of(seed, StressPlan(bug.profile, size=Size(5, 40)))
        tally.add(script, simulate(script))
        seed += 1
    (one,) = report(tally, 1.0, tmp_path).violations
    script = read_script(file_of(one))
    assert (one.reproduces, script.seed) == (True, one.seed)
    assert simulate(script).violations[0].words == one.message
    assert len(script.events) == len(one.event_list or ())
