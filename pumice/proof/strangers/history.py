# SPDX-License-Identifier: Apache-2.0
"""The history of a served cluster: all changes of its objects, and what the stress command itself saw and did."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from pumice.core.messages.events import FaultEvent, FaultStruck, Mutation
from pumice.core.objects.metadata import Object
from pumice.executors import waited
from pumice.storage import codec
from pumice.storage.journal import API, FAULT, Stored
from pumice.storage.records import read_as
from pumice.storage.sqlite import SqliteJournal

EVERYTHING: Final = 10_000_000


class ApiChange(Struct, frozen=True):
    """A change of an object, and when it was written (seconds since the epoch)."""

    at: float
    mutation: Mutation

    @property
    def object(self) -> Object:
        """Return the object after the change; before it, when it was deleted."""
        found: Object = codec.unpack(self.mutation.blob)
        return found


class Acknowledged(Struct, frozen=True):
    """A write that the server acknowledged to the stress command: the object and its revision then."""

    kind: str
    namespace: str
    name: str
    revision: int


class ApiHistory(Struct, frozen=True):
    """A history to be judged. `quiet`: revisions at which nothing had moved for a while, and no fault was in force; at
    the last one the subjects had had time to use what was free.

    `scheduler`: the schedulerName whose pods are the subjects'. `lag_s`: the age of the oldest state that a subject may
    have decided on, since faults delay what it sees; `slack_s`: for a request that is under way.
    """

    changes: Sequence[ApiChange]
    acknowledged: Sequence[Acknowledged] = ()
    quiet: Sequence[int] = ()
    scheduler: str = "volcano"
    lag_s: float = 5.0
    slack_s: float = 1.0
    struck: Counter[str] = field(default_factory=Counter[str])

    def seen_by(self, at: float) -> int:
        """Return the oldest revision that a subject may have decided on at this time; 0 before the first."""
        place = bisect_right(self.changes, at - self.lag_s, key=attrgetter("at"))
        return self.changes[place - 1].mutation.revision if place else 0


class Broken(Struct, frozen=True):
    """A broken invariant: its name, a sentence, and the revision of the change that shows it."""

    invariant: str
    words: str
    revision: int = 0


Found = Iterator[Broken]


def read_journal(path: Path) -> tuple[list[ApiChange], Counter[str]]:
    """Return the changes in a journal, in their order, and how many faults of which kind struck. Raises OpenError,
    DamagedError.
    """
    stored: Sequence[Stored] = waited(read_records, path)
    changes = [ApiChange(each.at, read_as(each, Mutation)) for each in stored if each.kind == API]
    faults = (read_as(each, FaultEvent) for each in stored if each.kind == FAULT)
    struck = Counter(each.fault for each in faults if isinstance(each, FaultStruck))
    return changes, struck


async def read_records(path: Path) -> Sequence[Stored]:
    """Return the records of changes and faults in a journal."""
    async with await SqliteJournal.open(path, read_only=True) as journal:
        return await journal.read(0, (API, FAULT), EVERYTHING)
