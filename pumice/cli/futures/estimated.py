"""Estimates for a source that a command line names."""

from __future__ import annotations

from pathlib import Path

import anyio

from pumice.cli.futures.options import ForkSource
from pumice.cli.terminal import Terminal
from pumice.collecting import rarely
from pumice.eta.estimate import Estimate, FutureSampling, estimates_of
from pumice.eta.runs import RunBook, runs_in
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
    if source.server is None and not source.manifests:
        book = anyio.run(runs_in, source.db or Path("pumice.db"), fork.now)
    else:
        book = RunBook() if runs is None else anyio.run(runs_in, runs)
    with terminal.progress("futures", sampling.samples) as advance, rarely():
        return estimates_of(fork, book.ended, sampling, asked, advance)


def range_of(estimate: Estimate | None) -> str:
    """In words, "" for a job of which nothing was estimated."""
    if estimate is None:
        return ""
    if not estimate.known:
        return "not known"
    high = "later than the horizon" if estimate.high_s is None else time_span(estimate.high_s)
    return f"{time_span(estimate.low_s or 0.0)} … {high}"
