"""Clusters from journals, and futures saved as journals."""

from __future__ import annotations

from pathlib import Path

from pumice.cluster.kernel.fork import Fork
from pumice.errors import InputError
from pumice.executors import in_thread, waited
from pumice.lab.lived import LivedRun
from pumice.questions.measures.jobs import JobRow
from pumice.questions.measures.measures import measure
from pumice.questions.whatif.saving import save
from pumice.questions.whatif.sources import journaled
from pumice.storage.sqlite import SqliteJournal


def load_fork(file: Path, cycle: int | None) -> Fork:
    """Return the cluster of a journal, at its end or as that cycle found it. Raises ConfigError, DamagedError,
    OpenError."""
    return waited(journaled, file, cycle)


def save_run(fork: Fork, seconds: float, seed: int, file: Path) -> None:
    """Save so many seconds of a future as a journal. Raises InputError when the file exists."""
    if file.exists():
        raise InputError("there is a file already; name one that is to be made", source=str(file))
    in_thread(save, fork, seconds, seed, file)


def measures_of(file: str | Path) -> LivedRun:
    """Return the rows and measures of a recorded run. Raises DamagedError, OpenError."""
    return waited(_measured, Path(file))


async def _measured(file: Path) -> LivedRun:
    rows: list[JobRow] = []
    async with await SqliteJournal.open(file, read_only=True) as journal:
        return LivedRun(rows, await measure(journal, rows.append))
