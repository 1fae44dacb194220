# SPDX-License-Identifier: Apache-2.0
"""Estimates for the source of a command line, and their accuracy over a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from msgspec.structs import asdict
from rich.console import Console

from pumice.cli.exits import UsageError
from pumice.cli.futures.options import ForkSource
from pumice.cli.inputs import in_force
from pumice.cli.manifests import load_accepted
from pumice.cli.tables.table import WholeTable
from pumice.cli.terminal import Terminal
from pumice.cluster.kernel.fork import Fork
from pumice.collecting import rarely
from pumice.config.errors import nearest_keys
from pumice.core.objects.metadata import Object
from pumice.errors import InputError
from pumice.questions.adviser.waiting_jobs import with_reasons
from pumice.questions.eta.estimate import Estimate, FutureSampling, estimates_of, lived_s
from pumice.questions.eta.runs import RunBook, runs_in
from pumice.questions.eta.score import EtaScore, Scored, calibration_of, moments_of, rehearsed, score, to_rehearse
from pumice.questions.whatif.naming import belongings

# --- Estimates for a source


def estimated(
    source: ForkSource,
    runs: Path | None,
    sampling: FutureSampling,
    terminal: Terminal,
    asked: frozenset[str] | None = None,
) -> dict[str, Estimate]:
    """Return the estimates by job. `runs`: a journal that knows earlier runs, where the source is none."""
    fork = source.fork(None, terminal)
    refuse_strangers(fork, asked)
    if source.server is None and not source.manifests:
        if runs is not None:
            raise UsageError("a journal knows its own runs: --runs goes with --server and -f", path="--runs")
        book = anyio.run(runs_in, source.db or Path("pumice.db"), fork.now)
    else:
        book = RunBook() if runs is None else anyio.run(runs_in, runs)
    with terminal.progress("eta: seconds lived", lived_s(sampling)) as advance, rarely():
        found = estimates_of(fork, book.ended, sampling, asked, advance, alone=False, plugins_dir=source.plugins_dir)
        return with_reasons(fork, found, as_files=bool(source.manifests))


def refuse_strangers(fork: Fork, asked: Iterable[str] | None) -> None:
    """Refuse a job that does not exist, and name those with near names. Raises InputError."""
    known = belongings(fork.objects)
    for job in sorted(set(asked or ()) - known.keys()):
        near = nearest_keys(job, known)
        raise InputError(f"job {job} does not exist" + (f"; near: {', '.join(near)}" if near else ""))


@dataclass(frozen=True, slots=True)
class RunScoring:
    """A run to score. `moments` at which estimates are made. Of a workload: the `first` jobs (None: all), which come
    `denser` times as fast.
    """

    moments: int | None = None
    first: int | None = None
    denser: float = 1.0

    def of(self, source: ForkSource, sampling: FutureSampling, terminal: Terminal) -> bool:
        """Show the scores if the options ask for them, and return whether they do. Raises UsageError, InputError,
        ConfigError."""
        if self.moments is None:
            if self.first is not None or self.denser != 1.0:
                raise UsageError("how much of a workload, and how fast, goes with --score", path="--first, --denser")
            return False
        if source.at is not None or source.server is not None:
            raise UsageError("scores are of a whole run: --db or -f goes with it", path="--score")
        scored = self._scored(source, self.moments, sampling, terminal)
        later = [each for each in scored if each.moment >= self.moments // 2]
        whole, half = calibration_of(scored), calibration_of(later)
        found = EtaScore(**asdict(whole), second_half=half)
        terminal.emit(found, lambda console: _show(console, asdict(whole), asdict(half)))
        return True

    def _scored(self, source: ForkSource, moments: int, sampling: FutureSampling, terminal: Terminal) -> list[Scored]:
        if source.manifests:
            return self._rehearsed(source, source.manifests, moments, sampling, terminal)
        if self.first is not None or self.denser != 1.0:
            raise UsageError("a journal's jobs came when they came: these go with -f", path="--first, --denser")
        file = source.db or Path("pumice.db")
        book = anyio.run(runs_in, file)
        with terminal.progress("moments", moments) as advance:
            return score(moments_of(file, moments), book, sampling, advance)

    def _rehearsed(
        self, source: ForkSource, manifests: Sequence[str], moments: int, sampling: FutureSampling, terminal: Terminal
    ) -> list[Scored]:
        told, _ = in_force(source.config, None, source.plugins_dir, source.lenient, terminal.warn)
        objects = load_accepted(manifests, terminal)
        fork = to_rehearse(objects, told, self.first, self.denser)
        with rarely():
            with terminal.progress("living through", moments) as advance:
                found = rehearsed(fork, moments, advance)
            with terminal.progress("moments", moments) as advance:
                return score(found.moments, found.book, sampling, advance)


def _show(console: Console, told: Object, half: Object) -> None:
    table = WholeTable("what", "at all moments", "at the later half")
    for name, value in told.items():
        table.add_row(name, _cell(value), _cell(half[name]))
    console.print(table)


def _cell(value: float | int | None) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
