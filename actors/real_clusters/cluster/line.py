"""Who waits for a request to the cluster, the most urgent first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from enum import IntEnum
from typing import Any, Final

import anyio

Work = Callable[[], Coroutine[Any, Any, None]]


class Urgency(IntEnum):
    """What goes before what: a pod that waits for its node waits for nothing that only tells of it."""

    DECISIONS = 0
    STATUSES = 1
    EVENTS = 2


MOST_EVENTS: Final = 20_000
"""So many wait at most; of what is not said then nobody hears (as with client-go's broadcaster)."""


class Line:
    """Work in the order of its urgency, and of its arrival."""

    def __init__(self) -> None:
        self._waiting: tuple[deque[Work], ...] = tuple(deque[Work]() for _ in Urgency)
        self._more = anyio.Event()

    def __len__(self) -> int:
        return sum(map(len, self._waiting))

    def put(self, urgency: Urgency, work: Work) -> bool:
        """Whether there was room for it."""
        waiting = self._waiting[urgency]
        if urgency is Urgency.EVENTS and len(waiting) >= MOST_EVENTS:
            return False
        waiting.append(work)
        if not self._more.is_set():
            self._more.set()
        return True

    async def get(self) -> Work:
        """The next."""
        while True:
            for waiting in self._waiting:
                if waiting:
                    return waiting.popleft()
            if self._more.is_set():
                self._more = anyio.Event()
            await self._more.wait()
