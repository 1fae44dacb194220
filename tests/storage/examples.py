"""Journals and records to test with."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from pumice.core.messages.decisions import Bind
from pumice.core.messages.events import Bound, ConfigLoaded, CycleRecord, Mutation
from pumice.storage import codec
from pumice.storage.journal import KINDS, Record
from pumice.storage.sqlite import SqliteJournal

if TYPE_CHECKING:
    from pathlib import Path

    from pumice.storage.journal import Journal, Stored

SMALL = st.builds(
    Record,
    kind=st.sampled_from(KINDS),
    payload=st.binary(max_size=300) | st.integers(0, 40).map(lambda times: b"the same again " * times),
    cause=st.integers(0, 1 << 40),
    at=st.floats(allow_nan=False),
)
RECORDS = st.lists(SMALL, max_size=20)


def record(number: int, kind: str = "api", size: int = 80) -> Record:
    """A record that can be told from every other."""
    return Record(kind, f"record {number} ".encode().ljust(size, b"."), number, float(number))


def records(count: int, first: int = 1) -> list[Record]:
    """So many of them."""
    return [record(number) for number in range(first, first + count)]


def pod(number: int) -> Record:
    """Return a record that shares most of its text with all others: a dictionary pays."""
    chance = random.Random(number)
    words = ["apiVersion: v1", "kind: Pod", "schedulerName: volcano", "restartPolicy: OnFailure", "image: busybox"]
    own = f"name: p{number} uid: {chance.randbytes(16).hex()}"
    return Record("api", "\n".join([*words, own, *(f"label-{each}: value of it" for each in range(20))]).encode())


def contents(stored: Stored) -> Record:
    """What was given to be written."""
    return Record(stored.kind, stored.payload, stored.cause, stored.at)


async def everything(journal: Journal) -> list[Stored]:
    """All records."""
    found: list[Stored] = []
    while chunk := await journal.read(found[-1].sequence if found else 0):
        found += chunk
    return found


def mutation(revision: int, name: str = "p0", type_: str = "ADDED") -> Record:
    """A change of the api's truth."""
    blob = codec.pack({"kind": "Pod", "metadata": {"name": name, "resourceVersion": str(revision)}})
    return Record("api", codec.encode(Mutation(revision, type_, "Pod", "default", name, blob)), 0, float(revision))


def cycle(number: int, revision: int, decisions: int = 0) -> Record:
    """A cycle that saw the api at `revision`."""
    digest = f"{number:032x}"
    payload = CycleRecord(
        number, 100.0 + number, 7, revision, revision, "c0", digest, decisions, carry={"count": number}
    )
    return Record("cycle", codec.encode(payload), 0, 100.0 + number)


def bind(name: str, cause: int = 0) -> Record:
    """A decision."""
    return Record("decision", codec.encode(Bind("default", name, f"uid-{name}", "n0", "default/j")), cause)


def bound(name: str, decision: int, number: int = 1) -> Record:
    """Its outcome."""
    uid = f"uid-{name}"
    return Record("outcome", codec.encode(Bound(f"{number}/{uid}", decision, "default", name, uid, "n0", 9)), decision)


def config(text: str, error: str = "") -> Record:
    """A configuration that was loaded, or refused."""
    return Record("config", codec.encode(ConfigLoaded(f"digest of {text}", text, "test.conf", error)))


def run_sql(path: Path, *statements: str) -> list[Any]:
    """Do to the file what anybody with SQLite can."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return [row for statement in statements for row in connection.execute(statement)]


async def make(path: Path, appends: int = 5, each: int = 10) -> None:
    """A closed journal of so many appends."""
    async with await SqliteJournal.open(path) as journal:
        for number in range(appends):
            await journal.append(records(each, number * each + 1))
