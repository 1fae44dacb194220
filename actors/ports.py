"""What actors are handed besides mailboxes: the activity board, the clock, the shelf, and port types.

Nothing here is an actor. An actor never imports another one; it takes the ports (mailboxes) named here in its
constructor, and `actors.system` alone decides whose they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, Protocol, TypeVar

import anyio

from actors.alarm import Alarm
from actors.mailbox import Mailbox
from actors.news import News
from core.messages import commands, events, orders, replies

T = TypeVar("T")

ApiPort = Mailbox[commands.ApiRequest, replies.ApiReply]
RecorderPort = Mailbox[commands.RecorderCommand, replies.Appended]
CacheMessage = commands.CacheCommand | events.CacheEvent
CacheReply = replies.SnapshotTaken | replies.Assumed | replies.ViewChecked
CachePort = Mailbox[CacheMessage, CacheReply]
RunnerPort = Mailbox[commands.RunnerCommand, replies.Done]
ActionPort = Mailbox[commands.ActionCommand, replies.ActionDone | replies.ActionFailed]
DryRunPort = Mailbox[commands.DryRunCommand, replies.Candidates | replies.DryRunFailed]
BindPort = Mailbox[orders.BindWorkerCommand, replies.Done]
EvictPort = Mailbox[orders.EvictWorkerCommand, replies.Done]
StatusPort = Mailbox[orders.StatusWriterCommand, replies.Done]
PokePort = Mailbox[commands.Poke, replies.Done]
MetricsPort = Mailbox[commands.MetricsCommand | events.MetricsEvent, replies.Exposition]


SCHEDULER = "scheduler"
"""The name under which the activity board notes whether the newest view has been scheduled."""


class Clock(Protocol):
    """The wall clock: seconds since the epoch. Waiting goes by `anyio.sleep`, never by this."""

    def now(self) -> float: ...


class RealClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()


@dataclass
class VirtualClock:
    """A wall clock that follows the event loop's (trio's MockClock), from `start` on (seconds since the epoch)."""

    start: float = 1_700_000_000.0
    _began: float | None = None

    def now(self) -> float:
        elapsed = anyio.current_time()
        if self._began is None:
            self._began = elapsed
        return self.start + elapsed - self._began


class Busy:
    """Counts as one piece of work under way for as long as it is entered; by several at a time, if need be."""

    __slots__ = ("_activity",)

    def __init__(self, activity: Activity) -> None:
        self._activity = activity

    def __enter__(self) -> None:
        self._activity.begin()

    def __exit__(self, *exception: object) -> None:
        self._activity.end()


class Activity:
    """Who is busy: makes "idle" an exact question instead of a guess after a pause.

    Everything pending is on this board before the one who left it there goes to sleep: messages (counted by mailboxes
    until they are handled), work in hand (`busy`), watchers behind the api's revision (`seen`), timers, and a scheduler
    that has not looked at the newest view (`unsettled`).
    """

    def __init__(self, news: News) -> None:
        self._news = news
        self._in_flight = 0
        self._busy = Busy(self)
        self._seen: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._timers: dict[str, int] = {}
        self._unsettled: set[str] = set()
        self._event: anyio.Event | None = None

    def begin(self, number: int = 1) -> None:
        """So many pieces of work are under way."""
        self._in_flight += number

    def end(self, number: int = 1) -> None:
        """They are done."""
        self._in_flight -= number
        if not self._in_flight:
            self._changed()

    def busy(self) -> Busy:
        """Around work in hand that no mailbox counts."""
        return self._busy

    def seen(self, watcher: str, revision: int, kinds: tuple[str, ...] = ()) -> None:
        """The watcher has dealt with everything of its kinds (all) up to this revision, its own requests included."""
        self._seen[watcher] = revision, kinds
        self._changed()

    def timers(self, actor: str, due: int) -> None:
        """So many timers of this actor will go off some day."""
        if self._timers.get(actor) != due:
            self._timers[actor] = due
            self._changed()

    def settled(self, actor: str, settled: bool) -> None:
        """Whether another turn of this actor, with no new input, would change nothing."""
        (self._unsettled.discard if settled else self._unsettled.add)(actor)
        self._changed()

    def forget(self, actor: str) -> None:
        """The actor is gone for good: nothing is expected of it."""
        self._seen.pop(actor, None)
        self._timers.pop(actor, None)
        self._unsettled.discard(actor)
        self._changed()

    def reasons(self) -> list[str]:
        """What keeps the system busy, in words; empty when it is idle."""
        found = [f"{self._in_flight} messages or pieces of work in flight"] if self._in_flight else []
        for name, (at, kinds) in sorted(self._seen.items()):
            if at < self._news.head(kinds):
                found.append(f"{name} is at revision {at} of {self._news.head(kinds)}")
        found += [f"{name} has {due} timers" for name, due in sorted(self._timers.items()) if due]
        return found + [f"{name} has not settled" for name in sorted(self._unsettled)]

    def is_idle(self) -> bool:
        """Nothing in flight, no watcher behind, no timer, everybody settled."""
        if self._in_flight or self._unsettled or any(self._timers.values()):
            return False
        return all(at >= self._news.head(kinds) for at, kinds in self._seen.values())

    async def wait_idle(self) -> None:
        """Wait until `is_idle`; wakes only when it was."""
        while not self.is_idle():
            if self._event is None:
                self._event = anyio.Event()
            await self._event.wait()

    def _changed(self) -> None:
        if self._event is not None and self.is_idle():
            self._event.set()
            self._event = None


class Shelf(Generic[T]):
    """In-process things (snapshots, sessions) by number: messages carry the number only."""

    def __init__(self) -> None:
        self._things: dict[int, T] = {}
        self._numbers = count(1)

    def put(self, thing: T) -> int:
        """Lay it down; returns its number."""
        number = next(self._numbers)
        self._things[number] = thing
        return number

    def get(self, number: int) -> T:
        """Look at it; KeyError when nobody left it there, or it was taken."""
        return self._things[number]

    def take(self, number: int) -> T:
        """Take it away."""
        return self._things.pop(number)

    def drop(self, number: int) -> None:
        """Throw it away, if it is there."""
        self._things.pop(number, None)

    def __contains__(self, number: int) -> bool:
        return number in self._things

    def __len__(self) -> int:
        return len(self._things)


@dataclass(frozen=True)
class Context:
    """What every actor gets: the wall clock, the activity board, and the api's news (its newest published revision).

    `alarm` makes something to sleep by.
    """

    clock: Clock
    news: News = field(default_factory=News)
    alarm: Callable[[], Alarm] = Alarm
    activity: Activity = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "activity", Activity(self.news))
