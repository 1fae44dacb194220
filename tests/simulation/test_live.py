"""Storms on the real clock: `pumice run --faults`."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from pumice.actors.api_server.faults.strikes import Fault, ListedFaults
from pumice.actors.system.settings import SystemSettings
from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.proof.storm.driver import node, pod_group, pods, queue
from pumice.proof.storm.live import MOST, REST_S, LiveMonitor, LiveStorm, live_rates, simulated_only
from pumice.proof.storm.script.profiles import profile
from pumice.runtime.main_job import RunOutcome, RunPlan, Watching, run_plan
from pumice.runtime.summary import BrokenInvariant, RunResult
from pumice.runtime.waiting import parse_until
from tests.simulation.planted import BUGS
from tests.simulation.test_soon import late_from

BACKENDS = ("asyncio", "trio")


def objects(jobs: int, every: int = 3) -> list[dict[str, Any]]:
    """Gangs of three for two nodes and two queues: there is room for all but one of every four.

    One of `every` so many is in the capped queue.
    """
    found = [queue("capped", {"capability": {"cpu": "4"}})]
    found += [node(f"n{number}", {"cpu": 8, "memory": "16Gi"}) for number in range(2)]
    for number in range(jobs):
        details = {"pods": 3, "min": 3, "queue": "capped" if number % every == 0 else "default"}
        found += [pod_group(f"j{number}", details), *pods(f"j{number}", details, range(3))]
    return found


def storm(
    tmp_path: Path, backend: Literal["asyncio", "trio"], names: str, seed: int = 1, until: str = "idle"
) -> RunResult:
    plan = RunPlan(objects(8), False, tmp_path / "storm.db", parse_until(until), backend, storm=LiveStorm(names, seed))
    return run_plan(plan, Watching()).summary


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_must_hold_holds_on_the_real_clock(backend: Literal["asyncio", "trio"], tmp_path: Path) -> None:
    summary = storm(tmp_path, backend, "live")
    assert summary.violations == []
    assert summary.pods.running == 15
    assert sum((summary.faults_injected or {}).values()) > 10


@pytest.mark.parametrize("until", ["5s", "cycles=3"])
def test_pods_that_a_run_cuts_off_are_no_violation(until: str, tmp_path: Path) -> None:
    """They run for hours; nobody waits for them, on virtual time neither."""
    jobs = objects(8)
    for each in jobs:
        if each["kind"] == "Pod":
            each["metadata"].setdefault("annotations", {})[DURATION] = "10h"
    plan = RunPlan(
        jobs, False, tmp_path / "storm.db", parse_until(until), "trio", virtual=True, storm=LiveStorm("live", 1)
    )
    summary = run_plan(plan, Watching()).summary
    assert (summary.violations, summary.pods.running) == ([], 15)
    assert summary.seconds < REST_S


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_journal_that_is_there_is_continued(backend: Literal["asyncio", "trio"], tmp_path: Path) -> None:
    assert storm(tmp_path, backend, "calm").violations == []
    summary = storm(tmp_path, backend, "live", seed=2)
    assert (summary.violations, summary.pods.running) == ([], 15)


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_is_seen_while_it_happens(
    backend: Literal["asyncio", "trio"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many pods of a queue: when the run is over the books agree."""
    BUGS["capability is not asked"].plant(monkeypatch)
    live, until = LiveStorm("calm", 1), parse_until("idle")
    plan = RunPlan(objects(4, every=1), False, tmp_path / "storm.db", until, backend, storm=live)
    found = {each.invariant for each in run_plan(plan, Watching()).summary.violations or ()}
    assert "within-capability" in found


NEITHER_GANG_NOR_PROPORTION = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: predicates
  - name: nodeorder
"""


def test_what_no_plugin_sees_to_is_no_violation(tmp_path: Path) -> None:
    """The gangs come in parts, and the capped queue has more than its cap; so does a second run on that journal."""
    settings = SystemSettings(config_text=NEITHER_GANG_NOR_PROPORTION)
    for jobs in (objects(8), []):
        until, live = parse_until("idle"), LiveStorm("calm", 1)
        plan = RunPlan(jobs, False, tmp_path / "storm.db", until, "trio", settings=settings, storm=live)
        summary = run_plan(plan, Watching()).summary
        assert (summary.violations, summary.pods.running) == ([], 16)


def test_a_violation_hides_no_other() -> None:
    async def flood() -> LiveMonitor:
        monitor = LiveMonitor()
        for number in range(2 * MOST):
            monitor.violated("books-agree", f"{number}")
        monitor.violated("one-node", "it moved")
        return monitor

    told = Counter(invariant for invariant, _ in anyio.run(flood).violations)
    assert told == {"books-agree": MOST, "one-node": 1}


@pytest.mark.slow
def test_a_cache_that_hears_of_things_late_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late_from(0.0, 5.0, monkeypatch)
    monkeypatch.setattr("pumice.proof.storm.invariants.soon.MOST_GLANCES", 20)
    (violation,) = storm(tmp_path, "trio", "calm", until="1s").violations or []
    assert violation.invariant == "books-agree"
    assert violation.message.startswith("the cache does not see what the api published")


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_api_may_crash(backend: Literal["asyncio", "trio"], tmp_path: Path) -> None:
    live = LiveStorm("calm", 1)
    occasions = ("watch Node+Queue #2", "bind default/j1-0 #1", "status PodGroup default/j1 by scheduler #1")
    live.faults = ListedFaults([Fault("crash", on, 1.0, "api-server") for on in occasions])
    plan = RunPlan(objects(8), False, tmp_path / "storm.db", parse_until("idle"), backend, storm=live)
    summary = run_plan(plan, Watching()).summary
    assert summary.faults_injected == {"crash": 3}
    assert (summary.violations, summary.pods.running) == ([], 15)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_journal_may_be_slow(backend: Literal["asyncio", "trio"], tmp_path: Path) -> None:
    live = LiveStorm("calm", 1)
    live.faults = ListedFaults([Fault("journal-slow", "append #3", 0.7)])
    plan = RunPlan(objects(2), False, tmp_path / "storm.db", parse_until("idle"), backend, storm=live)
    began = time.monotonic()
    summary = run_plan(plan, Watching()).summary
    assert time.monotonic() - began > 0.7
    assert (summary.faults_injected, summary.violations) == ({"journal-slow": 1}, [])


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_injected_crash_says_so_and_is_no_error(
    backend: Literal["asyncio", "trio"], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    live = LiveStorm("calm", 1)
    live.faults = ListedFaults([Fault("crash", "bind default/j1-0 #1", 1.0, "cache")])
    plan = RunPlan(objects(2), False, tmp_path / "storm.db", parse_until("idle"), backend, storm=live)
    assert run_plan(plan, Watching()).summary.violations == []
    said = [record for record in caplog.records if "actor cache was taken away" in record.getMessage()]
    assert [(record.levelname, record.getMessage()) for record in said] == [
        ("WARNING", "injected crash: actor cache was taken away")
    ]


def test_a_profile_is_divided_into_what_can_strike_here_and_what_cannot() -> None:
    journal, clock = profile("journal"), profile("clock")
    assert (list(live_rates(journal)), list(live_rates(clock))) == (["journal-slow"], [])
    assert simulated_only(journal) == ["journal-failing", "journal-unsure", "journal-torn", "power-cut"]
    assert simulated_only(clock) == ["clock-jump"]
    assert "claims" in simulated_only(profile("claims"))
    assert "its scheduler configuration" in simulated_only(profile("victims"))
    assert simulated_only(profile("live")) == []


@pytest.mark.parametrize("broken", [True, False])
def test_ctrl_c_hides_no_violation(broken: bool, tmp_path: Path) -> None:
    """A real SIGINT in this process, once everything has been handed in."""

    class Interrupting(Watching):
        def submitted(self, outcome: RunOutcome) -> None:
            if broken:
                live.monitor.violated("one-node", "it moved")
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

    live = LiveStorm("live", 1)
    plan = RunPlan(objects(2), False, tmp_path / "storm.db", parse_until(None), "trio", storm=live)
    outcome = run_plan(plan, Interrupting())
    assert outcome.interrupted
    expected = [BrokenInvariant("one-node", "it moved")] if broken else []
    assert outcome.summary.violations == expected
