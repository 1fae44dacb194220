"""A `pumice` that kills itself with SIGKILL at a chosen point of its work on the journal.

`python -m tests.pumice.runtime.fatal WHEN WHAT COUNT ARGUMENT…`: `WHEN` of the `COUNT`th statement that writes `WHAT`.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from storage import queries
from storage.rows import COLUMNS
from storage.sqlite import _Database  # pyright: ignore[reportPrivateUsage]

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
    original, left = _Database._rows, [count]  # pyright: ignore[reportPrivateUsage]

    async def rows(database: _Database, sql: str, values: Sequence[Any] = ()) -> list[Any]:
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

    setattr(_Database, "_rows", rows)  # noqa: B010


if __name__ == "__main__":
    arm(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    from pumice.cli import main

    sys.argv[1:] = sys.argv[4:]
    main()
