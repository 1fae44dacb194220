"""The cache: the scheduler's own view of the cluster, and its only writer.

Owns: the view (`core.state.view.View`), the queue of pods to look at again.
Accepts: `TakeSnapshot`, `Assume`, `CheckView`, and the outcomes of binds and evictions.
Sends: asks the api (watch, get). News of the view is a level signal, not a message.
When full: the session runner and the bind and evict workers wait; nothing they wait for waits for them.
Stops: after the outcomes that are queued; a pod still to be looked at again is looked at after the next start anyway,
because the new view is built from the api alone. So is it after a crash, and what is in flight (`Awaited` outlives the
crash) is assumed again: its room is taken. An outcome that never comes (whoever was to bring it crashed) is given up
after a while, and the pod looked at again: nothing stays assumed for ever.

Watch events are applied in the order of their revisions. What the cache itself does to the view (assume, forget) is
remembered with the revision it happened at, until the cycle that saw it is in the journal: a replay needs both.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, assert_never

from actors.errors import ActorFailedError, BrokenViewError
from actors.runtime.activity import SCHEDULER
from actors.runtime.actor import Actor
from actors.runtime.news import LevelSignal
from actors.runtime.watcher import Changes, Watcher
from actors.scheduling.resync import Awaited, Due, InFlight, ResyncQueue
from actors.system.ports import CacheMessage, CacheReply
from config.errors import RequestError
from core.messages.commands import Assume, CheckView, Get, TakeSnapshot
from core.messages.events import (
    BindRefused,
    BindTimedOut,
    Bound,
    Evicted,
    EvictRefused,
    EvictTimedOut,
    ViewOperation,
)
from core.messages.replies import Accepted, Assumed, SnapshotTaken, ViewChecked
from core.state.watched import WATCHED
from storage import codec

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from actors.runtime.context import Context
    from actors.runtime.envelope import Received
    from actors.runtime.shelf import Shelf
    from actors.scheduling.decider import SchedulerView
    from actors.system.ports import ApiPort, CachePort
    from core.messages.decisions import Bind, Decision

NEVER = -1
"""Watching from before the beginning lists first: a new view never lives through history again."""

log = logging.getLogger(__name__)


class Cache(Actor[CacheMessage, CacheReply]):
    """`changed` is raised to a version with every change of the view; it rises across restarts of this actor too."""

    def __init__(
        self,
        name: str,
        mailbox: CachePort,
        context: Context,
        *,
        api: ApiPort,
        view: SchedulerView,
        snapshots: Shelf[Any],
        changed: LevelSignal,
        awaited: Awaited,
        check_always: bool = False,
    ) -> None:
        super().__init__(name, mailbox, context)
        self.view = view
        self.unreadable: dict[str, str] = {}
        self._api = api
        self._snapshots = snapshots
        self._changed = changed
        self._base = changed.value + 1
        self._check_always = check_always
        self._watcher = Watcher(name, api, context.news, context.activity, WATCHED, since=NEVER)
        self._applied = LevelSignal()
        self._resyncs = ResyncQueue()
        self._awaited = awaited
        self._alarm = context.alarm()
        self._operations: list[ViewOperation] = [ViewOperation(0, "anew")]
        self._shown = 0
        self._shown_cycle = 0

    @property
    def version(self) -> int:
        """The view's version, made to rise across restarts."""
        return self._base + self.view.version

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Watching, and looking again at what failed."""
        return (self._watch, self._resync)

    async def handle(self, message: CacheMessage) -> CacheReply | None:
        """One message; outcomes are only noted, the truth comes by the watch."""
        match message:
            case TakeSnapshot():
                return self._snapshot(message.cycle)
            case Assume():
                return self._assume(message)
            case CheckView():
                return ViewChecked(tuple(self.view.check()), self._watcher.revision)
            case Bound() | Evicted():
                self._awaited.came(message.uid)
                self._resyncs.succeeded(message.uid)
            case BindRefused() | BindTimedOut():
                self._failed(message.namespace, message.name, message.uid, evicting=False)
            case EvictRefused() | EvictTimedOut():
                self._failed(message.namespace, message.name, message.uid, evicting=True)
            case _:
                assert_never(message)
        return None

    async def handle_batch(self, batch: Sequence[Received[CacheMessage, CacheReply]]) -> None:
        """A batch, and then what is still to come of it for the activity board."""
        await super().handle_batch(batch)
        self._note_timers()

    # --- snapshots and assumptions

    def _snapshot(self, cycle: int) -> SnapshotTaken:
        if cycle != self._shown_cycle:
            self._forget_shown()  # the cycle before is in the journal, though nobody came to assume it
        if self._check_always:
            self._demand_whole()
        handle = self._snapshots.put(self.view.snapshot())
        self._shown, self._shown_cycle = len(self._operations), cycle
        return SnapshotTaken(handle, self.version, self._watcher.revision, tuple(self._operations))

    def _assume(self, message: Assume) -> Assumed:
        self._forget_shown()
        now = self._alarm.now()
        assumed = [self._assume_one(each) for each in message.binds]
        missing = [bind.uid for bind, held in zip(message.binds, assumed, strict=True) if not held]
        for evict in message.evicts:
            self.view.evicting(evict.namespace, evict.name, evict.uid)
        decisions: tuple[Decision, ...] = (*message.binds, *message.evicts)
        for decision in decisions:
            self._awaited.add(now, decision)
        if message.binds or message.evicts:
            self._alarm.no_later_than(self._next_at())
            self._operations.append(ViewOperation(self._watcher.revision, "assume", message.cycle))
        self._announce()
        return Assumed(self.version, tuple(missing))

    def _assume_one(self, bind: Bind | InFlight) -> bool:
        """Of this pod, not of a namesake that has come since."""
        return self.view.assume(bind.namespace, bind.name, bind.node, bind.pre_bind, bind.uid)

    def _forget_shown(self) -> None:
        """The cycle is in the journal, and with it the operations it saw."""
        del self._operations[: self._shown]
        self._shown = 0

    def _demand_whole(self) -> None:
        problems = self.view.check_touched()  # it was whole at the snapshot before
        if problems:
            raise BrokenViewError("the scheduler's view contradicts itself", tuple(problems))

    def _announce(self) -> None:
        if self.version > self._changed.value:
            # before anybody wakes up: from here to the next cycle the system is not idle
            self.activity.settled(SCHEDULER, False)
            self._changed.raise_to(self.version)

    # --- watching

    async def _watch(self) -> None:
        while True:
            changes = await self._watcher.next()
            self._apply(changes)
            self._watcher.done(changes)
            self._announce()
            self._applied.raise_to(changes.revision)

    def _apply(self, changes: Changes) -> None:
        if changes.relisted:
            self._operations.append(ViewOperation(changes.revision, "relist", listed=changes.listed))
        self._apply_events(changes)
        if self._watcher.revision == NEVER:
            self._hold(changes.revision)

    def _hold(self, revision: int) -> None:
        """What was in flight when the instance before this one crashed is in flight still."""
        for each in self._awaited:
            pod = (each.namespace, each.name)
            operation = "hold-eviction" if each.evicting else "hold"
            if each.evicting:
                self.view.evicting(*pod, each.uid)
            else:
                self._assume_one(each)
            held = ViewOperation(revision, operation, 0, *pod, uid=each.uid, node=each.node, pre_bind=each.pre_bind)
            self._operations.append(held)

    def _apply_events(self, changes: Changes) -> None:
        for event in changes.events:
            try:
                self.view.apply(event.type, codec.unpack_shared(event.blob))
            except RequestError as error:
                # one object nobody can read must not block the others (Volcano #2843)
                self.unreadable[f"{event.kind} {event.namespace}/{event.name}"] = str(error)
                log.warning("%s %s/%s is left out: %s", event.kind, event.namespace, event.name, error)

    # --- looking again

    def _failed(self, namespace: str, name: str, uid: str, *, evicting: bool) -> None:
        self._awaited.came(uid)
        self._resyncs.failed(self._alarm.now(), namespace, name, uid, evicting=evicting)
        self._alarm.no_later_than(self._next_at())

    def _note_timers(self) -> None:
        self.activity.timers(self.name, len(self._resyncs) + len(self._awaited))

    def _next_at(self) -> float:
        return min(self._resyncs.next_at, self._awaited.next_at)

    async def _resync(self) -> None:
        while True:
            await self._alarm.sleep_until(self._next_at())
            with self.activity.busy():
                for lost in self._awaited.take_overdue(self._alarm.now()):
                    log.warning("no outcome ever came of %s/%s: looking at it again", lost.namespace, lost.name)
                    self._failed(lost.namespace, lost.name, lost.uid, evicting=lost.evicting)
                due = self._resyncs.take_due(self._alarm.now())
                if due:
                    await self._look_again(due)
                self._note_timers()

    async def _look_again(self, due: Sequence[Due]) -> None:
        """Read the pods, wait until the watch has come as far, then hold nothing against what the api says."""
        try:
            replies = await self._api.ask_many([Get("Pod", item.namespace, item.name) for item in due])
        except ActorFailedError:
            for item in due:
                self._failed(item.namespace, item.name, item.uid, evicting=item.evicting)
            return
        for item, reply in zip(due, replies, strict=True):
            if isinstance(reply, Accepted):
                await self._applied.wait_beyond(reply.revision - 1)
            if item.uid in self._awaited:
                continue  # a later decision about it is on its way by now
            whose = (item.namespace, item.name, item.uid)  # never a namesake's that has come since
            if (self.view.unevict if item.evicting else self.view.forget)(*whose):
                operation = "unevict" if item.evicting else "forget"
                revision = self._watcher.revision
                self._operations.append(ViewOperation(revision, operation, 0, *whose[:2], uid=item.uid))
        self._announce()
