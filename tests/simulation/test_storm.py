"""Storms repeat exactly, hold what must hold, find planted bugs, and shrink."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
import trio._core._run as trio_run

from pumice.actors.api_server.faults.strikes import KINDS, Fault, ListedFaults, SeededFaults
from pumice.actors.runtime.clock import RealClock
from pumice.actors.system.roles import CRASHABLE
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.config.errors import ConfigError
from pumice.core.messages.commands import BindPod
from pumice.proof.storm.script.events import Script, read_script, write_script
from pumice.proof.storm.script.profiles import profile, profiles
from pumice.proof.storm.script.shrink import FEW, shrink
from pumice.proof.storm.script.workload import Size
from pumice.proof.storm.simulation import StormOutcome, simulate
from pumice.proof.storm.stress import StressPlan, script_of
from pumice.runtime.determinism import OUTSIDE, SOURCE, SWITCH, TURNS, deterministic, source
from pumice.storage.memory import MemoryJournal
from tests.simulation.planted import BUGS

SMALL = Size(5, 40)
CI_SEEDS = 300
SHRUNK_IN = 100
"""Storms that may be run to cut one down (thrice as many while it is long): fewer than `pumice stress` takes."""
SLICES = 20
QUICK_SLICES = (0,)
QUICK_BUGS = (
    "devices do not come back",
    "scalar resources are not taken off a node",
    "a second try takes its room twice",
    "one failed bind loses the outcomes of others",
)
"""These slices and bugs are tried every day, the others with all that is slow."""
CRASHES = ("monitor-works", "process-lives", "actors-live")
DIGEST = """
from pumice.proof.storm.simulation import simulate
from pumice.proof.storm.stress import StressPlan, script_of
from pumice.proof.storm.script.workload import Size
for seed, profile, size in ((7, "storm", Size(4, 24)), (6, "victims", Size(5, 40))):
    print(simulate(script_of(seed, StressPlan(profile, size=size)), digest=True).digest)
"""


def parted(value: object, quick: bool) -> Any:
    return pytest.param(value, marks=() if quick else pytest.mark.slow)


def test_trio_keeps_its_switch_and_its_source_where_we_look() -> None:
    """When this fails trio has moved them, and no storm repeats any more."""
    before = getattr(trio_run, SWITCH)
    assert hasattr(trio_run, SOURCE)
    with deterministic(3):
        first = source().random()
        assert getattr(trio_run, SWITCH) is True
    with deterministic(3):
        assert source().random() == first
    assert getattr(trio_run, SWITCH) is before


def test_nobody_looks_on_within_a_storm_but_after_it() -> None:
    """When this fails trio has moved that, and storms cost more."""

    class Watcher(trio.abc.Instrument):
        steps = 0

        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            self.steps += 1

    watchers = Watcher(), Watcher()
    with deterministic(3):
        trio.run(trio.sleep, 0, instruments=[watchers[0]])
    trio.run(trio.sleep, 0, instruments=[watchers[1]])
    assert watchers[0].steps == 0 < watchers[1].steps


def test_one_thread_after_the_other_has_trio_and_it_is_as_it_was() -> None:
    before = dict(vars(trio_run))
    entered = threading.Event()

    def other() -> None:
        with deterministic(4):
            entered.set()

    thread = threading.Thread(target=other)
    with deterministic(3):
        thread.start()
        assert not entered.wait(0.2)
    thread.join()
    assert entered.is_set()
    assert dict(vars(trio_run)) == before


def test_trio_looks_outside_seldom_but_does() -> None:
    """When this fails trio has moved that, and storms cost more; or Ctrl-C comes to none."""
    looks: list[float] = []
    outside = getattr(trio_run, OUTSIDE)
    look = outside.get_events

    def counted(io: Any, timeout: float) -> Any:
        looks.append(timeout)
        return look(io, timeout)

    async def turn() -> None:
        for _ in range(10 * TURNS):
            await trio.lowlevel.checkpoint()

    outside.get_events = counted
    try:
        with deterministic(3):
            trio.run(turn)
    finally:
        outside.get_events = look
    assert 10 <= len([timeout for timeout in looks if timeout == 0]) <= 12


@pytest.mark.slow
def test_a_seed_repeats_exactly_in_every_process() -> None:
    """Also one in which an actor is taken away with a question in hand."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(map(str, sys.path))},
            capture_output=True, text=True, check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }  # fmt: skip
    assert len(digests) == 1
    assert simulate(script_of(8, StressPlan("storm", size=Size(4, 24))), digest=True).digest not in digests.pop()


@pytest.mark.parametrize("part", [parted(part, part in QUICK_SLICES) for part in range(SLICES)])
def test_what_must_hold_holds(part: int) -> None:
    """All seeds of a storm on a small cluster; a failing seed is named."""
    for seed in range(part, CI_SEEDS, SLICES):
        outcome = simulate(script_of(seed, StressPlan("storm", size=Size(4, 24))))
        assert outcome.violations == [], f"pumice stress --seed {seed} --seeds 1 --nodes 4 --pods 24"


@pytest.mark.parametrize("names", list(profiles()))
def test_every_profile_holds(names: str) -> None:
    for seed in (1, 2):
        outcome = simulate(script_of(seed, StressPlan(names, size=SMALL)))
        assert outcome.violations == []


def until_few(invariant: str) -> Callable[[Script], StormOutcome]:
    """Simulate until few events have broken the invariant; nothing that is tried afterwards breaks any."""
    calm: list[StormOutcome] = []

    def run(script: Script) -> StormOutcome:
        if calm:
            return calm[0]
        outcome = simulate(script)
        if len(script.events) <= FEW and [each.invariant for each in outcome.violations[:1]] == [invariant]:
            calm.append(replace(outcome, violations=[]))
        return outcome

    return run


@pytest.mark.parametrize("name", [parted(name, name in QUICK_BUGS) for name in BUGS])
def test_the_storm_finds(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Within so many seeds; what a small storm finds is cut down to a few events that break the same from a file, and
    some to the fewest. Of a large one, of which each takes a second, that would take minutes.
    """
    BUGS[name].plant(monkeypatch)
    plan = StressPlan(BUGS[name].profile, size=BUGS[name].size)
    scripts = (script_of(seed, plan) for seed in range(BUGS[name].seeds))
    storms = ((script, simulate(script)) for script in scripts)
    storm = next((storm for storm in storms if storm[1].violations), None)
    assert storm is not None, f"not found within {BUGS[name].seeds} seeds"
    script, outcome = storm
    found = outcome.violations[0]
    assert found.invariant in BUGS[name].invariants or not BUGS[name].invariants
    assert found.invariant not in CRASHES or "BrokenViewError" in found.words  # else the plant itself is wrong
    if BUGS[name].size != SMALL:
        return
    run = simulate if name in QUICK_BUGS else until_few(found.invariant)
    small = shrink(script, outcome, runs=SHRUNK_IN, simulate=run)
    assert len(small.events) <= FEW
    write_script(small, tmp_path / "storm.json")
    again = simulate(read_script(tmp_path / "storm.json"))
    assert [each.invariant for each in again.violations] == [found.invariant]


def test_faults_depend_on_seed_and_occasion_alone() -> None:
    requests = [BindPod("d", f"p{number}", "u", "n") for number in range(50)]
    rates = {"bind-refused": 0.5}
    whole, half = SeededFaults(1, rates, crashable=()), SeededFaults(1, rates, crashable=())
    struck = {fault.on for fault in map(whole.strike, requests) if fault}
    assert {fault.on for fault in map(half.strike, requests[::2]) if fault} == {
        on for on in struck if int(on.split()[1][3:]) % 2 == 0
    }
    assert 10 < len(struck) < 40
    whole.stop()
    assert all(whole.strike(request) is None for request in requests)


def test_listed_faults_strike_once_at_their_occasion() -> None:
    faults = ListedFaults([Fault("bind-lost", "bind d/p #2")])
    bind = BindPod("d", "p", "u", "n")
    assert [faults.strike(bind), faults.strike_watch(())] == [None, None]
    assert faults.strike(bind) == Fault("bind-lost", "bind d/p #2")
    assert faults.strike(bind) is None


def test_profiles_compose_and_unknown_names_are_refused() -> None:
    both = profile("binds+watches")
    assert both.rates["bind-lost"] == 0.1
    assert both.rates["watch-gone"] == 0.1
    assert all(profile(name).rates.keys() <= KINDS for name in profiles())
    with pytest.raises(ConfigError, match="unknown fault profile 'bind'; known: calm, binds"):
        profile("bind")
    with pytest.raises(ConfigError, match="unknown fault 'rain'"):
        SeededFaults(1, {"rain": 1.0}, crashable=())


def test_everybody_who_may_crash_is_there_to_crash() -> None:
    """A name that nobody bears is passed over in silence: its bearer may not have started yet."""
    system = System(SystemSettings(), MemoryJournal(), RealClock())
    assert set(CRASHABLE) <= system.switchboard.mailboxes.keys()
    for mailbox in system.switchboard.mailboxes.values():
        mailbox.abort()
