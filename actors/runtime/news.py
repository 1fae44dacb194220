"""News of the api: a level signal that says that there is some, and the log in which all who watch read it.

What is told by a level is never lost and never queued: a late waiter misses nothing, an early one is woken once.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Protocol

from actors.runtime.fresh_events import FreshEvents
from core.messages.watch import Events

if TYPE_CHECKING:
    import anyio


class LevelSignal:
    """A number that only rises, and a way to wait for it: a late waiter misses nothing, an early one is woken once."""

    def __init__(self, value: int = 0) -> None:
        self.value = value
        self._events = FreshEvents()
        self._waited_for: dict[int, anyio.Event] = {}

    def raise_to(self, value: int) -> None:
        """Raise the level and wake whoever waited for that; a lower value changes nothing."""
        if value <= self.value:
            return
        self.value = value
        if self._waited_for:
            for passed in [each for each in self._waited_for if each < value]:
                self._waited_for.pop(passed).set()

    async def wait_beyond(self, value: int) -> int:
        """Wait until the level is above `value`; returns it."""
        while self.value <= value:
            if value not in self._waited_for:
                self._waited_for[value] = self._events.make()
            await self._waited_for[value].wait()
        return self.value


class ChangeLog(Protocol):
    """The api's changes in order, for all who watch to read."""

    def read(self, since: int, kinds: tuple[str, ...] = (), limit: int = 1000) -> Events:
        """Published changes after `since` of these kinds, or parts of them (all when empty), at most `limit`.

        Raises ActorFailedError when the way to the api is broken.
        """
        ...


class News(LevelSignal):
    """The api's newest published revision. Who watches certain kinds is woken when one of those has changed.

    A broadcast: the api writes a change once, and every watcher reads it at its own pace, from its own revision on.
    """

    def __init__(self, value: int = 0) -> None:
        super().__init__(value)
        self._log: ChangeLog | None = None
        self._heads: dict[tuple[str, ...], int] = {}
        self._woken: dict[tuple[str, ...], anyio.Event] = {}

    def raise_to(self, value: int) -> None:
        """Anything may have changed."""
        if value > self.value:
            super().raise_to(value)
            for kinds in self._heads:
                self._raise(kinds)

    def publish(self, value: int, changed: AbstractSet[str]) -> None:
        """Raise the level; objects of the kinds `changed` are what is new."""
        if value > self.value:
            super().raise_to(value)
            for kinds in self._heads:
                if not kinds or not changed.isdisjoint(kinds):
                    self._raise(kinds)

    def open_log(self, log: ChangeLog) -> None:
        """The api lets watchers read its changes."""
        self._log = log

    def read(self, since: int, kinds: tuple[str, ...] = (), limit: int = 1000) -> Events:
        """See `ChangeLog.read`. Before the api has opened its log there is only listing."""
        return Events(self.value, gone=True) if self._log is None else self._log.read(since, kinds, limit)

    def head(self, kinds: tuple[str, ...]) -> int:
        """The newest level at which something of these kinds may have changed; () means all kinds."""
        return self._heads.setdefault(kinds, self.value)

    async def wait_for(self, kinds: tuple[str, ...], value: int) -> int:
        """Wait until the head of these kinds is above `value`; returns it."""
        head = self.head(kinds)
        while head <= value:
            event = self._woken.get(kinds)
            if event is None:
                event = self._woken[kinds] = self._events.make()
            await event.wait()
            head = self._heads[kinds]
        return head

    def _raise(self, kinds: tuple[str, ...]) -> None:
        self._heads[kinds] = self.value
        event = self._woken.pop(kinds, None)
        if event is not None:
            event.set()
