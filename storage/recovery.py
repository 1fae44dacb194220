# SPDX-License-Identifier: Apache-2.0
"""State that a restart needs from the journal: the api's objects, and the position of the cycles.

The state is a fold over the records: that of the newest checkpoint, then the records after it. A damaged journal is
never recovered from: DamagedError names the record.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from pumice.core.messages.events import Mutation
from pumice.storage.chain import verified
from pumice.storage.checkpoint import CheckpointState, Recovered, read_checkpoint
from pumice.storage.errors import CodecError, DamagedError
from pumice.storage.records import content

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.storage.journal import Head, Journal
    from pumice.storage.truth import Truth

__all__ = ["Recovered", "newest_state", "recover"]


async def recover(
    journal: Journal, restore: Callable[[Mutation], None], load: Callable[[Truth], None] | None = None
) -> Recovered:
    """Recover the state. `load` gets the objects of the newest checkpoint, when one exists; `restore` every later
    mutation, in order.

    Without `load`, `restore` gets an ADDED for every object of the checkpoint.
    """
    head = await journal.head()
    state = await newest_state(journal, head, past=False)
    recovered, after = Recovered(), None
    if state is not None:
        recovered = state.recovered
        (load or _one_by_one(restore))(state.truth)
        if state.sequence > head.cut:
            # The record of the checkpoint itself: the chain of the next one is checked against its hash.
            after = (await journal.read(state.sequence - 1, limit=1))[0]
    async with aclosing(verified(journal, head, after)) as chunks:
        async for chunk in chunks:
            for stored in chunk:
                recovered.note(stored, content(stored), restore)
    recovered.sequence = head.sequence
    return recovered


async def newest_state(journal: Journal, head: Head, *, past: bool = True) -> CheckpointState | None:
    """Return the newest checkpoint that can be read; None when none exists and none is needed. Raises DamagedError."""
    for checkpoint in await journal.checkpoints():
        if head.cut <= checkpoint.sequence <= head.sequence:
            try:
                return read_checkpoint(checkpoint, past=past)
            # An older one will do: the records after it are still there, since it is not below the cut.
            except CodecError:
                continue
    if head.cut:
        raise DamagedError(head.cut, "the records up to here were cut, and no checkpoint stands for them")
    return None


def _one_by_one(restore: Callable[[Mutation], None]) -> Callable[[Truth], None]:
    def load(truth: Truth) -> None:
        # By revision: the store takes changes in rising order only.
        rows = sorted(truth.rows(), key=lambda row: row[2].revision)
        for kind, (namespace, name), held in rows:
            restore(Mutation(held.revision, "ADDED", kind, namespace, name, held.blob))

    return load
