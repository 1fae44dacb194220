# SPDX-License-Identifier: Apache-2.0
"""The activity board: the busy actors, so that "idle" is exact."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio

from pumice.cluster.api.watch import NewestRevisions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from collections.abc import Set as AbstractSet

SCHEDULER = "scheduler"
"""The name under which the activity board notes whether the newest view has been scheduled."""


class Busy:
    """Counts as one piece of unfinished work while it is entered, by several callers if need be."""

    __slots__ = ("_activity",)

    def __init__(self, activity: Activity) -> None:
        self._activity = activity

    def __enter__(self) -> None:
        self._activity.begin()

    def __exit__(self, *exception: object) -> None:
        self._activity.end()


class Activity:
    """Activity board: counters of busy actors. It makes "idle" an exact question instead of a guess after a pause.

    Everything pending is on this board before the one who left it there goes to sleep: messages (counted by mailboxes
    until they are handled), work in hand (`busy`), watchers behind the api's revision (`seen`), timers, and a scheduler
    that has not looked at the newest view (`unsettled`).
    """

    def __init__(self) -> None:
        self._newest = NewestRevisions()
        self._in_flight = 0
        self._busy = Busy(self)
        self._seen: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._timers: dict[str, int] = {}
        self._unsettled: set[str] = set()
        self._cut: frozenset[str] = frozenset()
        self._awaited: list[tuple[Callable[[], bool], anyio.Event]] = []

    def begin(self, number: int = 1) -> None:
        """Note that `number` further pieces of work are under way."""
        self._in_flight += number

    def end(self, number: int = 1) -> None:
        """Note that pieces of work have ended."""
        self._in_flight -= number
        # only the last end can make the system idle: the others need no look at all watchers
        if not self._in_flight:
            self._changed()

    def busy(self) -> Busy:
        """Count work that no mailbox counts, for the length of the block."""
        return self._busy

    def published(self, revision: int, changed: AbstractSet[str] | None = None) -> None:
        """Note that watchers may see everything up to `revision`; `changed`: see `NewestRevisions`."""
        self._newest.published(revision, changed)

    def seen(self, watcher: str, revision: int, kinds: tuple[str, ...] = ()) -> None:
        """Note that the watcher has handled all changes of its kinds up to this revision, its own requests included."""
        self._seen[watcher] = revision, kinds
        self._newest.of(kinds)  # from now on it is known when they change
        self._changed()

    def has_news(self, revision: int, kinds: tuple[str, ...]) -> bool:
        """Return whether something of these kinds may have changed after this revision, and watchers may see it."""
        return self._newest.of(kinds) > revision

    def timers(self, actor: str, due: int) -> None:
        """Note the number of pending timers of this actor."""
        if self._timers.get(actor) != due and actor not in self._cut:
            self._timers[actor] = due
            self._changed()

    def cut_off(self, *actors: str) -> None:
        """Stop waiting for the timers of these actors: an idle system need not reach them."""
        self._cut = frozenset(actors)
        for actor in actors:
            self._timers.pop(actor, None)
        self._changed()

    def settled(self, actor: str, settled: bool) -> None:
        """Record whether another turn of this actor, without new input, would change nothing."""
        (self._unsettled.discard if settled else self._unsettled.add)(actor)
        self._changed()

    def forget(self, actor: str) -> None:
        """Forget an actor that is gone for good."""
        self._seen.pop(actor, None)
        self._timers.pop(actor, None)
        self._unsettled.discard(actor)
        self._changed()

    def reasons(self, *, timers: bool = True) -> list[str]:
        """Return the reasons why the system is busy; empty when it is idle. Without `timers`: those that no timer will
        end.
        """
        found = [f"{self._in_flight} messages or pieces of work in flight"] if self._in_flight else []
        for name, (at, kinds) in sorted(self._seen.items()):
            if at < self._newest.of(kinds):
                found.append(f"{name} is at revision {at} of {self._newest.of(kinds)}")
        found += [f"{name} has {due} timers" for name, due in sorted(self._timers.items()) if due and timers]
        return found + [f"{name} has not settled" for name in sorted(self._unsettled)]

    def is_idle(self) -> bool:
        """Return whether nothing is in flight, no watcher is behind, no timer runs, and every actor is settled."""
        # cheap questions first: revisions are compared only when nothing else is pending
        if self._in_flight or self._unsettled or any(self._timers.values()):
            return False
        return all(at >= self._newest.of(kinds) for at, kinds in self._seen.values())

    def is_quiet(self, except_for: Collection[str] = ()) -> bool:
        """Return whether nothing is in flight and no watcher is behind, `except_for` these: what this moment brought
        about is done. Timers may still run, and a scheduler may have a cycle before it.
        """
        if self._in_flight:
            return False
        return all(at >= self._newest.of(kinds) for name, (at, kinds) in self._seen.items() if name not in except_for)

    async def wait_idle(self) -> None:
        """Wait until `is_idle`; the waiter wakes only when it was."""
        await self._wait(self.is_idle)

    async def wait_quiet(self, except_for: Collection[str] = ()) -> None:
        """Wait until `is_quiet`; wakes only when it was."""
        await self._wait(partial(self.is_quiet, except_for))

    async def _wait(self, reached: Callable[[], bool]) -> None:
        while not reached():
            event = anyio.Event()
            self._awaited.append((reached, event))
            await event.wait()

    def _changed(self) -> None:
        # without a waiter a change costs one comparison, and not a look at all watchers
        if self._awaited:
            for waiter in [each for each in self._awaited if each[0]()]:
                self._awaited.remove(waiter)
                waiter[1].set()
