# SPDX-License-Identifier: Apache-2.0
"""Beginning of a journal, and all that follows it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from pumice.questions.measures.lives import there_at
from pumice.storage.checkpoint import read_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from pumice.core.messages.events import Mutation
    from pumice.questions.measures.lives import Lives
    from pumice.storage.checkpoint import CheckpointState
    from pumice.storage.journal import Journal, Stored

BATCH = 5_000


@dataclass(frozen=True)
class Beginning:
    """Beginning of a journal: the moment, and the record after which to read on. `state`: the objects that exist
    already."""

    at: float
    after: int
    state: CheckpointState | None = None

    def there(self) -> Sequence[Mutation]:
        """Return the objects that exist already, as if they came then."""
        return () if self.state is None else there_at(self.state)

    async def through(
        self,
        journal: Journal,
        lives: Lives,
        each: Callable[[Stored], None] | None = None,
        until: float = inf,
        kinds: Collection[str] | None = None,
    ) -> float:
        """Show lives the existing objects and every record from here on (of these kinds), at least to the moment
        `until`, and return the moment of the last one. `each` gets the records instead, in their order. Raises
        DamagedError.
        """
        for mutation in self.there():
            lives.note(mutation, self.at)
        follow = each or lives.follow
        newest = (await journal.head()).sequence
        after, ended = self.after, self.at
        while batch := await journal.read(after, kinds, limit=BATCH):
            for stored in batch:
                follow(stored)
            after, ended = batch[-1].sequence, max(ended, batch[-1].at)
            if ended > until:
                return ended  # times in a journal rise
        # The last record may be of another kind.
        return max([ended, *(one.at for one in await journal.read(newest - 1, limit=1))])


async def beginning(journal: Journal) -> Beginning:
    """Return the beginning of a journal; if its first records were cut off, the oldest state it keeps."""
    head = await journal.head()
    kept = [one for one in await journal.checkpoints() if one.sequence >= head.cut] if head.cut else []
    if kept:
        state = read_checkpoint(kept[-1])  # they come newest first
        # Not the moment of its last cycle: pods were bound and ended since, and there may be no cycles at all.
        following = await journal.read(state.sequence, limit=1)
        return Beginning(round(min([kept[-1].at, *(one.at for one in following)]), 3), state.sequence, state)
    first = await journal.read(head.cut, limit=1)
    return Beginning(round(first[0].at, 3) if first else 0.0, head.cut)
