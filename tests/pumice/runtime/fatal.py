"""`pumice` in processes that are killed: from outside, or by themselves at a chosen point of their work on the journal.

They are forked off one that has imported everything, so that a kill costs what the run costs and no start.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.process
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pumice.cli import main
from pumice.storage.rows import COLUMNS
from pumice.storage.sqlite import queries
from pumice.storage.sqlite.database import Database

WHEN: Final = ("before", "inside", "after")
"""Inside: another thread kills while SQLite writes; after: it is written, and nobody has heard of it yet."""
WHAT: Final = {"api": 12, "decision": 2, "outcome": 2, "cycle": 4, "checkpoint": 3}
"""Kinds of records, and how many statements write some in the time in which a run is killed."""
COMMIT_S: Final = 0.002


def die() -> None:
    """As kill -9 does it: no handler, no flush, no goodbye."""
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def die_soon() -> None:
    """While this thread goes on."""

    def wait() -> None:
        time.sleep(random.random() * COMMIT_S)
        die()

    threading.Thread(target=wait).start()


def writes(what: str, sql: str, values: Sequence[Any]) -> bool:
    """Whether a statement writes records of this kind."""
    if what == "checkpoint":
        return sql == queries.SAVE_CHECKPOINT
    return sql.startswith("INSERT INTO journal") and what in values[1 :: len(COLUMNS)]


def arm(when: str, what: str, count: int) -> None:
    """From here on the process is mortal."""
    original, left = Database._rows, [count]  # pyright: ignore[reportPrivateUsage]

    async def rows(database: Database, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        left[0] -= writes(what, sql, values)
        if left[0] > 0 or not writes(what, sql, values):
            return await original(database, sql, values)
        if when == "before":
            die()
        if when == "inside":
            die_soon()
        await original(database, sql, values)
        die()
        raise AssertionError("still alive")

    setattr(Database, "_rows", rows)  # noqa: B010


@dataclass(frozen=True)
class Point:
    """`when` of the `count`th statement that writes `what`."""

    when: str
    what: str
    count: int


def forked(arguments: Sequence[str], said: Path, point: Point | None = None) -> multiprocessing.process.BaseProcess:
    """The command, running in a process of its own; `said` gets what it says on stderr."""
    process = _FORKS.Process(target=_live, args=(list(arguments), said, point), daemon=True)
    process.start()
    return process


def _live(arguments: list[str], said: Path, point: Point | None) -> None:
    for stream, target in ((1, os.devnull), (2, str(said))):
        os.dup2(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    if point is not None:
        arm(point.when, point.what, point.count)
    sys.argv[1:] = arguments
    main()


_FORKS: Final = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])
