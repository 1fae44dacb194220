# SPDX-License-Identifier: Apache-2.0
"""The cache: the scheduler's own view of the cluster, and its only writer.

Owns: the view (`pumice.core.state.view.View`), the queue of pods to look at again.
Accepts: `TakeSnapshot`, `Assume`, `CheckView`, `LookLater`, `ReadBoard`, `ReadResidents`, and the
outcomes of binds and evictions.
Sends: asks the api (watch, get), or a cluster elsewhere (get). News of the view is a level signal, not a message.
When full: the session runner and the bind and evict workers wait; nothing they wait for waits for them.
Stops: after the outcomes that are queued; a pod still to be looked at again is looked at after the next start anyway,
because the new view is built from the api alone. So is it after a crash, and what is in flight (`Awaited` outlives the
crash) is assumed again: its room is taken. An outcome that never comes (its carrier crashed) is given up
after a while, and the pod looked at again: nothing stays assumed for ever.

Watch events are applied in the order of their revisions. What the cache itself does to the view (assume, forget) is
remembered with the revision it happened at, until the cycle that saw it is in the journal: a replay needs both.
"""

from __future__ import annotations

import logging
import time
from math import inf
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from pumice.actors.errors import ActorFailedError, BrokenViewError
from pumice.actors.runtime.activity import SCHEDULER
from pumice.actors.runtime.actor import Actor
from pumice.actors.runtime.clock import stood_still
from pumice.actors.runtime.level_signal import LevelSignal
from pumice.actors.runtime.watcher import WatchedChanges, Watcher
from pumice.actors.scheduling.resync import Awaited, Due, ResyncQueue
from pumice.actors.system.ports import CacheMessage, CacheReply
from pumice.core.board import BoardReader, residents_of
from pumice.core.fold.shown import Shown
from pumice.core.messages.boards import BoardRead, ReadBoard, ReadResidents, ResidentsRead
from pumice.core.messages.commands import Assume, CheckView, Get, LookLater, TakeSnapshot
from pumice.core.messages.events import (
    AssumedCycle,
    BeganAnew,
    BindRefused,
    BindTimedOut,
    Bound,
    Evicted,
    EvictRefused,
    EvictTimedOut,
    ForgotBind,
    HeldBind,
    HeldEviction,
    Relisted,
    Unevicted,
)
from pumice.core.messages.replies import Accepted, Assumed, Refused, SnapshotTaken, ViewChecked
from pumice.core.objects.metadata import Object
from pumice.core.objects.parts import WATCHED
from pumice.core.state.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from pumice.actors.runtime.actor import Context
    from pumice.actors.runtime.envelope import Received
    from pumice.actors.scheduling.decider import SchedulerView
    from pumice.actors.system.ports import ApiPort, CachePort
    from pumice.cluster.handles import HandleTable
    from pumice.config.errors import RequestError
    from pumice.core.messages.decisions import Decision
    from pumice.core.messages.events import ViewOperation
    from pumice.core.state.snapshot import Snapshot

# --- Boards for readers
# Part of the cache.


class TimedBoards:
    """Boards with their cost. `stopwatch()` gives seconds of work: other programs' work on the machine must not count
    as a reason to pause.
    """

    def __init__(self, stopwatch: Callable[[], float] = time.thread_time) -> None:
        self._stopwatch = stopwatch
        self._reader = BoardReader()

    def read(self, view: SchedulerView, version: int, asked: ReadBoard) -> BoardRead:
        """Return the parts that the asker lacks; empty for a view that is not a `View`."""
        began = self._stopwatch()
        if not isinstance(view, View):
            return BoardRead(asked.version, asked.layout)
        return replace(self._reader.read(view, version, asked), seconds=self._stopwatch() - began)


def residents_on(view: SchedulerView, node: str) -> ResidentsRead:
    """Return the pods on a node."""
    return residents_of(view, node) if isinstance(view, View) else ResidentsRead(node, known=False)


NEVER = -1
"""Watching from before the beginning lists first: a new view never lives through history again."""

log = logging.getLogger(__name__)


class Cache(Actor[CacheMessage, CacheReply]):
    """Keeps the scheduler's view up to date, as its only writer; all others get snapshots, which do not change.

    `changed` is raised to a version with every change of the view, across restarts of this actor too. `truth`: the
    server that is asked about a pod in an unknown state: the cluster, where that is elsewhere.
    """

    def __init__(
        self,
        name: str,
        mailbox: CachePort,
        context: Context,
        *,
        api: ApiPort,
        truth: ApiPort,
        view: SchedulerView,
        snapshots: HandleTable[Snapshot],
        changed: LevelSignal,
        awaited: Awaited,
        check_always: bool = False,
    ) -> None:
        super().__init__(name, mailbox, context)
        self._boards = TimedBoards()
        self._fold = Shown(lambda: view, self._leave_out)
        self.unreadable: dict[str, str] = {}
        self._truth = truth
        self._objects = context.objects
        self._snapshots = snapshots
        self._changed = changed
        # a new view counts from zero: without this its versions would be below the runner's, which would never wake
        self._base = changed.value + 1
        self._check_always = check_always
        self._watcher = Watcher(name, api, context, WATCHED, since=NEVER)
        self._applied = LevelSignal()
        self._resyncs = ResyncQueue()
        self._awaited = awaited
        self._again_at = inf
        self._alarm = context.alarm()
        self._operations: list[ViewOperation] = [BeganAnew(0)]
        self._shown = 0
        self._shown_cycle = 0

    @property
    def view(self) -> SchedulerView:
        """Return the scheduler's view."""
        return self._fold.view

    @property
    def version(self) -> int:
        """Return the view's version, which rises across restarts."""
        return self._base + self.view.version

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Watch, and look again at failed pods."""
        return (self._watch, self._resync)

    def delivers_inline(self, message: CacheMessage) -> bool:
        """Return True for every message."""
        return True

    async def handle(self, message: CacheMessage) -> CacheReply | None:
        """Handle one message; outcomes are only noted, since the new state comes by the watch."""
        match message:
            case TakeSnapshot():
                return self._snapshot(message)
            case Assume():
                return self._assume(message)
            case ReadBoard():
                return self._boards.read(self.view, self.version, message)
            case ReadResidents():
                return residents_on(self.view, message.node)
            case CheckView():
                return ViewChecked(tuple(self.view.check()), self._watcher.revision)
            case Bound() | Evicted():
                self._awaited.came(message.uid)
                self._resyncs.succeeded(message.uid)
            case BindRefused() | BindTimedOut():
                self._failed(message.namespace, message.name, message.uid, evicting=False)
            case EvictRefused() | EvictTimedOut():
                self._failed(message.namespace, message.name, message.uid, evicting=True)
            case LookLater():
                self._again_at = min(self._again_at, self._alarm.now() + message.wait_s)
                self._alarm.no_later_than(self._next_at())
            case _:
                assert_never(message)
        return None

    async def handle_batch(self, batch: Sequence[Received[CacheMessage, CacheReply]]) -> None:
        """Handle a batch, and report its remaining work to the activity board."""
        await super().handle_batch(batch)
        self._note_timers()

    # --- snapshots and assumptions

    def _snapshot(self, asked: TakeSnapshot) -> SnapshotTaken:
        if asked.cycle != self._shown_cycle:
            self._forget_shown()  # the cycle before is in the journal, though it was not assumed
        if self._check_always:
            self._demand_whole()
        is_no_op = asked.said is not None and self.view.next_is_no_op(asked.said) and not self._operations
        # no handle: a runner that skips a no-op cycle reads no snapshot, so none is made
        handle = 0 if is_no_op else self._snapshots.put(self._taken(asked))
        self._changed.raise_to(self.version)  # of what the asking itself has changed no other cycle need hear
        self._shown, self._shown_cycle = len(self._operations), asked.cycle
        return SnapshotTaken(handle, self.version, self._watcher.revision, tuple(self._operations))

    def _taken(self, asked: TakeSnapshot) -> Snapshot:
        return self.view.snapshot(asked.volumes, kept=asked.kept, checks=self._check_always)

    def _assume(self, message: Assume) -> Assumed:
        self._forget_shown()
        now = self._alarm.now()
        missing: list[str] = []
        decisions: tuple[Decision, ...] = (*message.binds, *message.evicts)
        if decisions:
            missing = self._operate(AssumedCycle(self._watcher.revision, message.cycle), decisions)
            for decision in decisions:
                self._awaited.add(now, decision)
            self._alarm.no_later_than(self._next_at())
        self._announce()
        return Assumed(self.version, tuple(missing))

    def _operate(self, operation: ViewOperation, decided: tuple[Decision, ...] = ()) -> list[str]:
        """Carry out an operation, and remember it for the replay."""
        missing = self._fold.operate(operation, decided)
        self._operations.append(operation)
        return missing

    def _forget_shown(self) -> None:
        """Forget the operations that a cycle saw and that are in the journal with it."""
        del self._operations[: self._shown]
        self._shown = 0

    def _demand_whole(self) -> None:
        problems = self.view.check_touched()  # it was whole at the snapshot before
        if problems:
            raise BrokenViewError("the scheduler's view contradicts itself", tuple(problems))

    def _announce(self) -> None:
        if self.version > self._changed.value:
            # before any actor wakes up: from here to the next cycle the system is not idle
            self.activity.settled(SCHEDULER, False)
            self._changed.raise_to(self.version)

    # --- watching

    async def _watch(self) -> None:
        while True:
            changes = await self._watcher.next()
            self._apply(changes)
            self._watcher.done(changes)
            self._announce()
            # last: `_look_again` goes on from here and must find the view at this revision
            self._applied.raise_to(changes.revision)

    def _apply(self, changes: WatchedChanges) -> None:
        unpack = self._objects.unpack
        if changes.relisted:
            shown = ((event.type, unpack(event.blob)) for event in changes.events)
            # single changes are in the api's journal; that these came as a list is not, and a replay needs it
            operation = Relisted(changes.revision, changes.listed)
            self._fold.operate(operation, listed=shown)
            self._operations.append(operation)
        else:
            for event in changes.events:
                self._fold.see(event.type, unpack(event.blob))
        if self._watcher.revision == NEVER:
            # after the first list: only then does the new view have the pods and nodes to assume on
            self._hold(changes.revision)

    def _hold(self, revision: int) -> None:
        """Keep the decisions that were in flight when the instance before this one crashed."""
        for each in self._awaited:
            pod = (each.namespace, each.name, each.uid)
            held = HeldEviction(revision, *pod) if each.evicting else HeldBind(revision, *pod, each.node, each.pre_bind)
            self._operate(held)

    def _leave_out(self, obj: Object, problem: RequestError) -> None:
        whose: Object = obj.get("metadata") or {}
        name = f"{obj.get('kind')} {whose.get('namespace') or ''}/{whose.get('name')}"
        self.unreadable[name] = str(problem)
        log.warning("%s is left out: %s", name, problem)

    # --- looking again

    def _failed(self, namespace: str, name: str, uid: str, *, evicting: bool) -> None:
        self._awaited.came(uid)
        self._resyncs.failed(self._alarm.now(), namespace, name, uid, evicting=evicting)
        self._alarm.no_later_than(self._next_at())

    def _note_timers(self) -> None:
        self.activity.timers(self.name, len(self._resyncs) + len(self._awaited) + (self._again_at < inf))

    def _next_at(self) -> float:
        return min(self._resyncs.next_at, self._awaited.next_at, self._again_at)

    async def _resync(self) -> None:
        while True:
            due_at = await self._alarm.sleep_until(self._next_at())
            with self.activity.busy():
                now = self._alarm.now()
                # a process that was stopped could not hear outcomes either: they are late, and not lost
                if stood_still(now - due_at):
                    self._awaited.put_off(now, now - due_at)
                for lost in self._awaited.take_overdue(self._alarm.now()):
                    log.warning("no outcome ever came of %s/%s: looking at it again", lost.namespace, lost.name)
                    self._failed(lost.namespace, lost.name, lost.uid, evicting=lost.evicting)
                due = self._resyncs.take_due(self._alarm.now())
                if due:
                    await self._look_again(due)
                if self._again_at <= self._alarm.now():
                    self._again_at = inf
                    self._base += 1  # another version of the same view
                    self._announce()
                self._note_timers()

    async def _look_again(self, due: Sequence[Due]) -> None:
        """Read the pods, wait until the watch has come as far, then accept the api's state."""
        try:
            replies = await self._truth.ask_many([Get("Pod", item.namespace, item.name) for item in due])
        except ActorFailedError:
            for item in due:
                self._failed(item.namespace, item.name, item.uid, evicting=item.evicting)
            return
        for item, reply in zip(due, replies, strict=True):
            if isinstance(reply, Accepted | Refused):  # what is gone may have been bound before
                # a bind that did happen must be seen before it is forgotten, or its room would be free for a moment
                await self._applied.wait_beyond(reply.revision - 1)
            if item.uid in self._awaited:
                continue  # a later decision about it is on its way by now
            back = Unevicted if item.evicting else ForgotBind
            operation = back(self._watcher.revision, item.namespace, item.name, item.uid)
            if not self._fold.operate(operation):
                self._operations.append(operation)
        self._announce()
