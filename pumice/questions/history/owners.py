"""What a journal knows beside what a cycle saw: the objects of which controllers make pods."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object
from pumice.questions.oneshot.prepare import CONTROLLED
from pumice.storage import codec
from pumice.storage.checkpoint import read_checkpoint
from pumice.storage.journal import API
from pumice.storage.sqlite import SqliteJournal

BATCH: Final = 5_000


async def owners_at(db: Path, sequence: int) -> list[Object]:
    """The objects that controllers make others for, as they were before the record of that number, by arrival."""
    found: dict[tuple[str, str, str], bytes] = {}
    async with await SqliteJournal.open(db, read_only=True) as journal:
        after = 0
        for checkpoint in await journal.checkpoints():
            if after <= checkpoint.sequence < sequence:
                after = checkpoint.sequence
                rows = read_checkpoint(checkpoint).truth.rows()
                found = {(kind, *name): held.blob for kind, name, held in rows if kind in CONTROLLED}
        while batch := await journal.read(after, (API,), BATCH):
            for stored in batch:
                change = codec.decode(stored.payload, Mutation)
                if stored.sequence >= sequence:
                    return [codec.unpack(blob) for blob in found.values()]
                if change.kind in CONTROLLED:
                    who = (change.kind, change.namespace, change.name)
                    if change.type == "DELETED":
                        found.pop(who, None)
                    else:
                        found[who] = change.blob
            after = batch[-1].sequence
    return [codec.unpack(blob) for blob in found.values()]
