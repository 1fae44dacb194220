"""What bind and evict workers share: bringing outcomes back, and remembering what was carried out."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from core.messages.recording import Append, Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from actors.system.ports import CachePort, RecorderPort
    from core.messages.events import CacheEvent


class Outcomes:
    """Each outcome is encoded once: the same bytes go to the cache and to the journal."""

    def __init__(self, cache: CachePort, recorder: RecorderPort) -> None:
        self._cache = cache
        self._recorder = recorder

    async def report(self, outcomes: Sequence[CacheEvent]) -> None:
        """Tell both. Not awaited on disk: the truth is the api's, and that is there already."""
        if not outcomes:
            return
        frames = [self._cache.encode(outcome) for outcome in outcomes]
        entries = [Entry("outcome", frame, outcome.sequence) for outcome, frame in zip(outcomes, frames, strict=True)]
        # Told to one and not the other, it would be carried out and told again.
        await self._cache.tell(*frames, through=True)
        await self._recorder.tell(Append(tuple(entries)), through=True)


class RecentOperations:
    """The last `limit` operation ids."""

    def __init__(self, limit: int = 65_536) -> None:
        self._limit = limit
        self._ids: OrderedDict[str, None] = OrderedDict()

    def is_new(self, operation: str) -> bool:
        """Whether it was not seen before; it is from now on."""
        if operation in self._ids:
            return False
        self._ids[operation] = None
        if len(self._ids) > self._limit:
            self._ids.popitem(last=False)
        return True
