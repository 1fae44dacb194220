"""One at a time: who comes first goes first."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from actors.fresh_events import FreshEvents

if TYPE_CHECKING:
    import anyio


class Turns:
    """A lock between the tasks of one actor: `async with` it. Free, as it is mostly, it is taken without a wait.

    Unlike anyio's it asks the event loop nothing: neither who takes it, nor whether that one is cancelled, which it
    hears at its next wait. It must not be taken by who has it.
    """

    __slots__ = ("_events", "_taken", "_waiting")

    def __init__(self) -> None:
        self._events = FreshEvents()
        self._taken = False
        self._waiting: deque[anyio.Event] = deque()

    async def __aenter__(self) -> None:
        if not self._taken:
            self._taken = True
            return
        turn = self._events.make()
        self._waiting.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self._pass_on()  # it had come by then
            else:
                self._waiting.remove(turn)
            raise

    async def __aexit__(self, *exception: object) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self._taken = False
