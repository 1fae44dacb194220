# SPDX-License-Identifier: Apache-2.0
"""Storms for strangers, seed by seed, and what is made of those that break an invariant."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from pumice.config.errors import WorldError
from pumice.proof.storm.script.events import write_script
from pumice.proof.storm.script.workload import Size
from pumice.proof.strangers.judges.panel import promise_of
from pumice.proof.strangers.reducing import ReducedStorm, reduced, shows
from pumice.proof.strangers.report import SubjectFinding, SubjectsResult, command_of, page
from pumice.proof.strangers.script import StrangerScript
from pumice.proof.strangers.storming import Rig, ShownViolation, StormJudgement, run_storm

SIZE: Final = Size(4, 20)
RUNS: Final = 40
"""Storms that are run to cut one down; in lockstep PATIENCE times as many."""
PATIENCE: Final = 4
JOURNAL: Final = "storm.db"


@dataclass
class SubjectTally:
    """Sums over storms, and the first failing one of each invariant. `seeds_of`: all failing ones; `first`: what the
    first of them showed; `problem`: why a storm could not be run, which interrupts the others.
    """

    seeds: int = 0
    changes: int = 0
    struck: Counter[str] = field(default_factory=Counter[str])
    restarts: list[float] = field(default_factory=list[float])
    seconds: list[float] = field(default_factory=list[float])
    failures: dict[str, StrangerScript] = field(default_factory=dict[str, StrangerScript])
    seeds_of: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    first: dict[str, ShownViolation] = field(default_factory=dict[str, ShownViolation])
    unbound: int = 0
    interrupted: bool = False
    problem: str = ""
    first_left: int | None = None

    def add(self, outcome: StormJudgement, seconds: float) -> None:
        """Count a storm."""
        self.seeds += 1
        self.changes += outcome.changes
        self.struck += outcome.struck
        self.restarts += outcome.restarts
        self.seconds.append(seconds)
        self.unbound += not outcome.bound
        seed = outcome.script.seed
        shown = {each.invariant: each for each in reversed(outcome.broken)}
        for invariant, violation in shown.items():
            self.first.setdefault(invariant, violation)
            self.seeds_of.setdefault(invariant, []).append(seed)
            known = self.failures.get(invariant)
            if known is None or seed < known.seed:
                self.failures[invariant] = msgspec.structs.replace(outcome.script, invariant=invariant)


def in_a_folder(script: StrangerScript, rig: Rig, kept: Path | None = None) -> StormJudgement:
    """Run a storm in a folder of its own; `kept`: where its journal is copied to, if it breaks `script.invariant`."""
    with TemporaryDirectory(prefix="pumice-stress-", ignore_cleanup_errors=True) as name:
        outcome = run_storm(script, rig, Path(name))
        if kept is not None and shows(outcome, script.invariant):
            shutil.copyfile(Path(name) / JOURNAL, kept)
        return outcome


def run_seeds(
    scripts: Callable[[int], StrangerScript],
    seeds: range,
    rig: Rig,
    workers: int,
    advance: Callable[[int], None] = lambda _: None,
) -> SubjectTally:
    """Run the storms of these seeds, so many beside each other. Ctrl-C ends it after those that are under way, and so
    does a server or a subject that does not start; before any storm was run, that is an error (WorldError).
    """
    tally, left = SubjectTally(), dict.fromkeys(seeds)

    def timed(seed: int) -> tuple[StormJudgement, float]:
        began = time.perf_counter()
        return in_a_folder(scripts(seed), rig), time.perf_counter() - began

    with ThreadPoolExecutor(workers) as threads:
        running = {threads.submit(timed, seed): seed for seed in seeds}
        try:
            for future in as_completed(running):
                tally.add(*future.result())
                del left[running.pop(future)]
                advance(1)
        except BaseException as error:
            rig.stop.set()
            threads.shutdown(wait=True, cancel_futures=True)
            if isinstance(error, WorldError) and tally.seeds:
                tally.problem = str(error)  # hours of storms may lie behind it
            elif not isinstance(error, KeyboardInterrupt):
                raise
            tally.interrupted = True
    tally.first_left = next(iter(left), None) if tally.interrupted else None
    for each in tally.seeds_of.values():
        each.sort()
    return tally


@dataclass(frozen=True)
class FindingMaker:
    """Means of making findings: the `subjects` and `flags` of the command, the folder, and tries of each storm."""

    subjects: list[str]
    flags: list[str]
    rig: Rig
    folder: Path
    tries: int

    def of(self, tally: SubjectTally, advance: Callable[[int], None] = lambda _: None) -> list[SubjectFinding]:
        """Cut the first failing storm of each invariant down, and write what it takes to see it again. Ctrl-C ends the
        cutting down, not the report.
        """
        found = list[SubjectFinding]()
        for invariant in sorted(tally.failures):
            try:
                found.append(self._finding(tally, invariant, cut=not tally.interrupted))
            except KeyboardInterrupt:
                tally.interrupted = True
                found.append(self._finding(tally, invariant, cut=False))
            advance(1)
        return found

    def _finding(self, tally: SubjectTally, invariant: str, *, cut: bool) -> SubjectFinding:
        script = tally.failures[invariant]
        stem = f"stranger-{script.invariant}-{script.seed}"
        journal, events = self.folder / f"{stem}.db", self.folder / f"{stem}.json"
        runs = (PATIENCE if script.lockstep else 1) * RUNS

        def run(tried: StrangerScript) -> StormJudgement:
            return in_a_folder(tried, self.rig, journal)

        small = reduced(script, run, tries=self.tries, runs=runs) if cut else ReducedStorm(script, 0, 0, None)
        problem, report = "", self.folder / f"{stem}.md"
        command = command_of(events, self.subjects, self.flags)
        try:
            write_script(small.script, events)
            if small.outcome is not None:
                report.write_text(page(small, self.subjects, command, journal, journal), "utf-8")
        except OSError as error:
            problem = str(error)
        return self._told(small, tally, None if problem else events, problem)

    def _told(self, small: ReducedStorm, tally: SubjectTally, events: Path | None, problem: str) -> SubjectFinding:
        script = small.script
        first = tally.first[script.invariant]
        shown = [each for each in small.outcome.broken if each.invariant == script.invariant] if small.outcome else []
        whole = events is not None and bool(shown)
        return SubjectFinding(
            seed=script.seed,
            seeds=tally.seeds_of[script.invariant],
            invariant=script.invariant,
            promise=promise_of(script.invariant),
            message=(shown or [first])[0].words,
            moment=(shown or [first])[0].moment,
            tries=small.tries,
            shown=small.shown,
            event_list=list(script.events),
            events_file=str(events) if events is not None else None,
            journal_file=str(events.with_suffix(".db")) if events is not None and whole else None,
            report_file=str(events.with_suffix(".md")) if events is not None and whole else None,
            file_error=problem or None,
            command=command_of(events, self.subjects, self.flags) if events is not None else None,
        )


def shown_again(tally: SubjectTally, tries: int, events: Path, command: str) -> list[SubjectFinding]:
    """Return what the runs of one written storm broke."""
    return [
        SubjectFinding(
            seed=script.seed,
            seeds=[script.seed],
            invariant=invariant,
            promise=promise_of(invariant),
            message=tally.first[invariant].words,
            moment=tally.first[invariant].moment,
            tries=tries,
            shown=len(tally.seeds_of[invariant]),
            event_list=list(script.events),
            events_file=str(events),
            journal_file=None,
            report_file=None,
            file_error=None,
            command=command,
        )
        for invariant, script in sorted(tally.failures.items())
    ]


def result_of(
    tally: SubjectTally, subjects: list[str], judges: str, seconds: float, violations: list[SubjectFinding]
) -> SubjectsResult:
    """Return the result of the command."""
    return SubjectsResult(
        subjects=subjects,
        judges=judges,
        seeds=tally.seeds,
        first_seed_left=tally.first_left,
        changes=tally.changes,
        seeds_per_minute=60.0 * tally.seeds / seconds if seconds > 0 else 0.0,
        seconds=seconds,
        storm_s=median(tally.seconds) if tally.seconds else 0.0,
        restart_s=max(tally.restarts, default=None),
        faults_injected=dict(sorted(tally.struck.items())),
        violations=violations,
    )
