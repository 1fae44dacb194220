"""Estimates for a source that a command line names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import anyio

from pumice.cli.exits import UsageError
from pumice.cli.futures.options import ForkSource
from pumice.cli.terminal import Terminal
from pumice.cluster.kernel.fork import Fork
from pumice.collecting import rarely
from pumice.config.errors import nearest_keys
from pumice.errors import InputError
from pumice.questions.eta.estimate import Estimate, FutureSampling, estimates_of, lived_s
from pumice.questions.eta.runs import RunBook, runs_in
from pumice.questions.whatif.belongings import belongings
from pumice.units import time_span


def estimated(
    source: ForkSource,
    runs: Path | None,
    sampling: FutureSampling,
    terminal: Terminal,
    asked: frozenset[str] | None = None,
) -> dict[str, Estimate]:
    """By job. `runs`: a journal that knows earlier runs, where the source is none."""
    fork = source.fork(None, terminal)
    refuse_strangers(fork, asked)
    if source.server is None and not source.manifests:
        if runs is not None:
            raise UsageError("a journal knows its own runs: --runs goes with --server and -f", path="--runs")
        book = anyio.run(runs_in, source.db or Path("pumice.db"), fork.now)
    else:
        book = RunBook() if runs is None else anyio.run(runs_in, runs)
    with terminal.progress("eta: seconds lived", lived_s(sampling)) as advance, rarely():
        return estimates_of(fork, book.ended, sampling, asked, advance)


def refuse_strangers(fork: Fork, asked: Iterable[str] | None) -> None:
    """Raises InputError for a job that is not there, with those that are near."""
    known = belongings(fork.objects)
    for job in sorted(set(asked or ()) - known.keys()):
        near = nearest_keys(job, known)
        raise InputError(f"there is no job {job}" + (f"; near: {', '.join(near)}" if near else ""))


def range_of(estimate: Estimate | None) -> str:
    """In words, "" for a job of which nothing was estimated."""
    if estimate is None:
        return ""
    if not estimate.known:
        return "not known"
    high = "later than the horizon" if estimate.high_s is None else time_span(estimate.high_s)
    return f"{time_span(estimate.low_s or 0.0)} … {high}"
