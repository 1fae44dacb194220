"""What a journal says of pods: which were bound where, how often, and which were evicted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from pumice.core.messages.events import Mutation
from pumice.questions.replay.verify import verify
from pumice.storage import codec
from pumice.storage.errors import OpenError
from pumice.storage.journal import API, Stored
from pumice.storage.recovery import recover
from pumice.storage.sqlite import SqliteJournal


@dataclass
class Facts:
    """`bound`: pod uid -> node; `times`, `deletions`: how often a pod was put on a node, and told to go, by uid;
    `gone`: uids of deleted pods; `hashes`: of all records, by number."""

    whole: bool = True
    sequence: int = 0
    bound: dict[str, str] = field(default_factory=dict[str, str])
    times: Counter[str] = field(default_factory=Counter[str])
    deletions: Counter[str] = field(default_factory=Counter[str])
    gone: set[str] = field(default_factory=set[str])
    hashes: dict[int, bytes] = field(default_factory=dict[int, bytes])
    unresolved: int = 0
    _leaving: set[str] = field(default_factory=set[str])

    def note(self, stored: Stored) -> None:
        """The next record."""
        self.hashes[stored.sequence] = stored.hash
        if stored.kind != API or (change := codec.decode(stored.payload, Mutation)).kind != "Pod":
            return
        pod = codec.unpack(change.blob)
        uid, on = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        if change.type == "DELETED":
            self.gone.add(uid)
        if pod["metadata"].get("deletionTimestamp") and uid not in self._leaving:
            self._leaving.add(uid)
            self.deletions[uid] += 1
        self.times[uid] += bool(on) and self.bound.get(uid) != on
        if on:
            self.bound[uid] = on


async def facts(db: Path) -> Facts:
    """Of the journal as it is now; nothing when there is none yet."""
    found = Facts()
    try:
        journal = await SqliteJournal.open(db, read_only=True)
    except OpenError:
        return found
    async with journal:
        while batch := await journal.read(found.sequence):
            for stored in batch:
                found.note(stored)
            found.sequence = batch[-1].sequence
        found.whole = (await journal.check()).whole
        recovered = await recover(journal, lambda mutation: None)
        found.unresolved = len(recovered.unresolved)
    return found


async def replayed(db: Path) -> tuple[bool, str]:
    """Whether every cycle is decided as recorded, and the first difference."""
    async with await SqliteJournal.open(db, read_only=True) as journal:
        report = await verify(journal)
        return report.identical, str(report.first_difference)
