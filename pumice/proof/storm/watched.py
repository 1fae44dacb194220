"""A journal that somebody looks over the shoulder of: a batch is shown once it is written, late or at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from pumice.actors.api_server.faults.strikes import Faults
    from pumice.storage.journal import ChainReport, Checkpoint, Head, Journal, Record, Stored


class WatchedJournal:
    """The journal `inner`, and `see` gets what has been appended to it.

    `faults` may make it slow, and nothing else: a write that fails ends the process.
    """

    def __init__(self, inner: Journal, see: Callable[[Sequence[Record]], None], faults: Faults) -> None:
        self._inner = inner
        self._see = see
        self._faults = faults

    async def append(self, records: Sequence[Record]) -> int:
        """Write, at once or late, then show."""
        fault = self._faults.strike_append()
        if fault is not None:
            await anyio.sleep(fault.amount)
        last = await self._inner.append(records)
        self._see(records)
        return last

    async def read(self, after: int = 0, kinds: Collection[str] | None = None, limit: int = 10_000) -> Sequence[Stored]:
        """At most `limit` records (of these kinds) numbered above `after`, oldest first."""
        return await self._inner.read(after, kinds, limit)

    async def last(self, kind: str) -> Stored | None:
        """The newest record of a kind."""
        return await self._inner.last(kind)

    async def head(self) -> Head:
        """Both ends."""
        return await self._inner.head()

    async def check(self) -> ChainReport:
        """Read everything and verify the chain."""
        return await self._inner.check()

    async def save_checkpoint(self, checkpoint: Checkpoint) -> int:
        """Keep a checkpoint; the number of the newest record."""
        return await self._inner.save_checkpoint(checkpoint)

    async def checkpoints(self) -> Sequence[Checkpoint]:
        """The checkpoints there are, newest first."""
        return await self._inner.checkpoints()

    async def cut(self, through: int) -> int:
        """Forget the records up to `through`; the last record forgotten."""
        return await self._inner.cut(through)

    async def confirm(self) -> None:
        """Let what has been appended be durable."""
        await self._inner.confirm()

    async def close(self) -> None:
        """Close `inner`."""
        await self._inner.close()
