# SPDX-License-Identifier: Apache-2.0
"""Verification by several processes: each decides its share of the cycles again.

A cycle is a function of what the journal holds, so a process can begin anywhere: it folds the records before its share
without deciding anything, which costs a fraction, and decides from there on. The result is that of one process.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio

from pumice.collecting import rarely
from pumice.core.messages.events import CycleRecord
from pumice.executors import local
from pumice.plugins.loader import install_plugins
from pumice.questions.replay.verify import ReplayReport, verify
from pumice.storage.errors import DamagedError
from pumice.storage.journal import CYCLE, Journal
from pumice.storage.records import read_as
from pumice.storage.sqlite import open_history

LEAST: Final = 100_000
"""Records that make a process worth its start."""
FOLD: Final = 0.3
"""Cost of a record that is only folded, relative to one whose cycle is decided again."""
LOOK_S: Final = 0.1
"""Seconds between two questions to the processes about their progress."""


class CycleRange(NamedTuple):
    """Cycles `first` to `last`; None: to the end."""

    first: int
    last: int | None


def lengths(processes: int) -> list[float]:
    """Return parts of the whole, so that all processes end at the same time although the later ones fold more."""
    parts = [(1 - FOLD) ** number for number in range(processes)]
    return [part / sum(parts) for part in parts]


async def shares(journal: Journal, workers: int) -> list[CycleRange]:
    """Return the cycles of a journal, cut for at most so many processes."""
    head = await journal.head()
    records = head.sequence - head.cut
    firsts, done = [1], 0.0
    for part in lengths(max(1, min(workers, records // LEAST)))[:-1]:
        done += part
        number = await _cycle_after(journal, head.cut + int(records * done))
        firsts += [number] if number > firsts[-1] else []
    lasts = [first - 1 for first in firsts[1:]]
    return [CycleRange(first, last) for first, last in zip(firsts, [*lasts, None], strict=True)]


async def _cycle_after(journal: Journal, sequence: int) -> int:
    """Return the first cycle recorded after a record; 0 without one, or where damage hides it."""
    try:
        found = await journal.read(sequence, (CYCLE,), 1)
        return read_as(found[0], CycleRecord).cycle if found else 0
    except DamagedError:  # the process that reaches it says so
        return 0


class _Told:
    """State that the processes share: the number of decided records, and the first share that differs."""

    progress: Any = None
    differs: Any = None


class _NeedlessError(Exception):
    """An earlier share differs already."""


def _begin(progress: object, differs: object, plugins: Path | None) -> None:
    _Told.progress, _Told.differs = progress, differs
    install_plugins(plugins)


def _decide(file: Path, number: int, share: CycleRange, anew: bool) -> ReplayReport | None:
    """Decide one share; None when an earlier one differed meanwhile."""

    def advance(events: int) -> None:
        with _Told.progress.get_lock():
            _Told.progress.value += events
        if _Told.differs.value < number:
            raise _NeedlessError

    try:
        with rarely():
            report = anyio.run(_verify, file, share, anew, advance)
    except _NeedlessError:
        return None
    if not report.identical:
        with _Told.differs.get_lock():
            _Told.differs.value = min(_Told.differs.value, number)
    return report


async def _verify(file: Path, share: CycleRange, anew: bool, advance: Callable[[int], None]) -> ReplayReport:
    async with open_history(file) as journal:
        return await verify(journal, first=share.first, last=share.last, anew=anew, advance=advance)


def verify_shares(
    file: Path,
    shares: Sequence[CycleRange],
    plugins: Path | None,
    advance: Callable[[int], None],
    *,
    anew: bool = False,
) -> ReplayReport:
    """Verify the shares of a journal, each in a process of its own. `anew`: each cycle by a session built for it
    alone.
    """
    context = multiprocessing.get_context("spawn")
    progress, differs = context.Value("q", 0), context.Value("q", len(shares))
    with local(len(shares), partial(_begin, progress, differs, plugins)) as pool:
        futures = [pool.submit(_decide, file, number, share, anew) for number, share in enumerate(shares)]
        _watch(futures, progress, advance)
        return merged([report for future in futures if (report := future.result()) is not None])


def _watch(futures: Sequence[Future[Any]], progress: Any, advance: Callable[[int], None]) -> None:
    told, waiting = 0, True
    while waiting:
        waiting = bool(wait(futures, LOOK_S).not_done)
        now = progress.value
        advance(now - told)
        told = now


def merged(reports: Sequence[ReplayReport]) -> ReplayReport:
    """Return the reports of successive shares as one: it ends with the first that differs."""
    whole = ReplayReport()
    for report in reports:
        whole.cycles += report.cycles
        whole.first_cycle = whole.first_cycle or report.first_cycle
        whole.last_cycle = report.last_cycle or whole.last_cycle
        whole.begun = min(whole.begun, report.begun) if whole.events else report.begun
        whole.events = report.begun + report.events - whole.begun
        whole.chain, whole.first_difference = report.chain, report.first_difference
        whole.equal_through = report.equal_through or whole.equal_through
        if whole.agreement is None:
            whole.agreement = report.agreement
        elif report.agreement is not None:
            whole.agreement.add(report.agreement)
        if not report.identical:
            break
    return whole


__all__ = ["CycleRange", "lengths", "merged", "shares", "verify_shares"]
