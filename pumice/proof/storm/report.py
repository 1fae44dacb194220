# SPDX-License-Identifier: Apache-2.0
"""Report of `pumice stress`: sums, and for each storm that broke an invariant a list of events that breaks it again.

A list is run once more as it stands in its file before the report says that it shows the violation.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from pumice.config.errors import ConfigError
from pumice.proof.storm.script.events import Event, Script, read_script, write_script
from pumice.proof.storm.script.shrink import RUNS, shrink, written_out
from pumice.proof.storm.simulation import StormOutcome, simulate
from pumice.proof.storm.stress import Tally
from pumice.results import Result

SHRUNK: Final = 5
"""Number of violations that are cut down; the others are only written out."""
TRIED: Final = 50
"""Number that is run again: with thousands this would take as long as the storms."""
PROBE: Final = bytes(65536)


class BrokenStorm(msgspec.Struct, kw_only=True):
    """A storm that broke an invariant, as a list of events that breaks it again. `reproduces`: the list broke it again,
    null when that was not tried. `event_list`: the events, null where they were not cut down and are in the file.
    `events_file`: the file, null when it could not be written, because of `file_error`. `command` runs them.
    """

    seed: int
    invariant: str
    message: str
    events: int
    event_list: list[Event] | None
    reproduces: bool | None
    events_file: str | None
    file_error: str | None
    command: str | None


class StressResult(Result, kw_only=True, tag="stress/1"):
    """Result of the storms. `seeds`: how many were run, `seeds_lost`: those in which the process died,
    `first_seed_left`: the first that was not run because of Ctrl-C. `faults_injected`: by kind. `digest`: of one storm
    that was run from a file.
    """

    seeds: int
    seeds_lost: list[int]
    first_seed_left: int | None
    events: int
    seeds_per_s: float
    seconds: float
    faults_injected: dict[str, int]
    violations: list[BrokenStorm]
    digest: str | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, slots=True)
class Finding:
    """A list of events. `reproduces`: True if it breaks its invariant again, None if that was not tried.

    `path`: the file it is in, None when it could not be written, because of `problem`; `cut`: True if it was cut down.
    """

    script: Script
    words: str
    path: Path | None
    reproduces: bool | None
    problem: str | None = None
    cut: bool = True

    def told(self) -> BrokenStorm:
        """Return the printed form; the events stay in the file where the storm was not cut down."""
        path = None if self.path is None else str(self.path)
        return BrokenStorm(
            seed=self.script.seed,
            invariant=self.script.invariant,
            message=self.words,
            events=len(self.script.events),
            event_list=list(self.script.events) if self.cut or path is None else None,
            reproduces=self.reproduces,
            events_file=path,
            file_error=self.problem,
            command=path and f"pumice stress --events {shlex.quote(path)}",
        )


def report(tally: Tally, seconds: float, folder: Path, advance: Callable[[int], None] = lambda _: None) -> StressResult:
    """Return the result of `pumice stress`; failing storms are cut down and written into the folder.

    Ctrl-C ends the cutting down, not the report. `advance` receives the number of further storms that are done.
    """
    violations: list[BrokenStorm] = []
    for number, (script, outcome) in enumerate(tally.failures):
        violations.append(_finding(tally, number, script, outcome, folder).told())
        advance(1)
    return result_of(tally, seconds, violations)


def result_of(tally: Tally, seconds: float, violations: list[BrokenStorm]) -> StressResult:
    """Return the result of all storms."""
    return StressResult(
        seeds=tally.seeds,
        seeds_lost=tally.lost,
        first_seed_left=tally.first_left,
        events=tally.events,
        seeds_per_s=tally.seeds / seconds if seconds > 0 else 0.0,
        seconds=seconds,
        faults_injected=dict(sorted(tally.struck.items())),
        violations=violations,
    )


def check_folder(folder: Path) -> None:
    """Check that files can be written, before the storms. Raises OSError."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(PROBE)
    except OSError as error:
        raise OSError(error.errno, f"cannot be written to: {error.strerror}", f"--into {folder}") from error


def line_of(event: Event) -> str:
    """Return an event as one line for people."""
    when = f"on {event.on}:" if event.on else f"at {event.at:g} s:"
    amount = f"{event.amount:g}" if event.amount else ""
    details = (f"{key}={value}" for key, value in event.details.items())
    return " ".join(filter(None, (when, event.what, event.target, amount, *details)))


def _finding(tally: Tally, number: int, script: Script, outcome: StormOutcome, folder: Path) -> Finding:
    if not tally.interrupted and number < TRIED:
        try:
            return _tried(script, outcome, folder, RUNS if number < SHRUNK else 0)
        except BaseException as error:
            if not _by_ctrl_c(error):
                raise
            tally.interrupted = True
    whole = written_out(script, outcome)
    path, problem = _write(whole, folder)
    return Finding(whole, outcome.violations[0].words, path, None, problem, cut=False)


def _tried(script: Script, outcome: StormOutcome, folder: Path, runs: int) -> Finding:
    """Return the storm cut down; when that does not show the violation, the storm as it was, whose faults come by their
    rates.
    """
    small = shrink(script, outcome, runs=runs)
    finding = _run_again(small, outcome, folder, cut=runs > 0)
    if finding.reproduces:
        return finding
    return _run_again(msgspec.structs.replace(script, invariant=small.invariant), outcome, folder, cut=False)


def _run_again(script: Script, outcome: StormOutcome, folder: Path, *, cut: bool) -> Finding:
    path, problem = _write(script, folder)
    try:
        found = simulate(read_script(path) if path else script).violations
    except ConfigError as error:  # a file that cannot be run is reported, beside all that was found
        found, problem = [], str(error)
    again = bool(found) and found[0].invariant == script.invariant
    words = (found if again else outcome.violations)[0].words
    return Finding(script, words, path, again, problem, cut=cut)


def _write(script: Script, folder: Path) -> tuple[Path | None, str | None]:
    """Return the file, or why there is none. Profiles have files of their own: the same seed is another storm
    in each.
    """
    path = folder / "-".join(filter(None, ("storm", re.sub(r"[^\w+.-]", "_", script.profile), f"{script.seed}.json")))
    try:
        write_script(script, path)
    except OSError as error:
        with suppress(OSError):
            path.unlink()  # half of it may be there
        return None, f"{path}: {error.strerror}"
    return path, None


def _by_ctrl_c(error: BaseException) -> bool:
    members: tuple[BaseException, ...] = getattr(error, "exceptions", ())  # of a task group's errors
    return isinstance(error, KeyboardInterrupt) or any(_by_ctrl_c(member) for member in members)
