"""One at a time, in the order of coming: for tasks of one event loop that wait for something in between."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from actors.fresh_events import FreshEvents

if TYPE_CHECKING:
    import anyio


class Turns:
    """`async with` it for the time of one's turn.

    Who finds nobody before goes on at once, at a fifth of the cost of `anyio.Lock`, which notes who holds it.
    """

    def __init__(self) -> None:
        self._taken = False
        self._waiting: deque[anyio.Event] = deque()
        self._events = FreshEvents()

    async def __aenter__(self) -> None:
        if self._taken:
            await self._wait()
        self._taken = True

    async def __aexit__(self, *exception: object) -> None:
        self._hand_on()

    async def _wait(self) -> None:
        turn = self._events.make()
        self._waiting.append(turn)
        try:
            await turn.wait()
        except BaseException:  # cancelled: whoever is next must not wait for ever
            if turn.is_set():
                self._hand_on()
            else:
                self._waiting.remove(turn)
            raise

    def _hand_on(self) -> None:
        """It stays taken while somebody waits, so that nobody slips in before."""
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self._taken = False
