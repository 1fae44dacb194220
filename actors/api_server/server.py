# SPDX-License-Identifier: Apache-2.0
"""The api server: the state of the cluster, as kube-apiserver and etcd hold it.

Owns: the store (`pumice.cluster.api.store`); no other actor writes it.
Accepts: `ApiRequest`; every one is answered, with a refusal at worst.
Sends: asks the recorder. Watchers pull, and are answered when there is news (`pumice.actors.api_server.pulls`).
When full: the asker waits. The api waits only for the recorder, so it always moves on.
Stops: after what is queued has been made durable and answered.

A batch of requests is applied in order, its changes go to the journal in one append, and only then are the askers
answered or any watcher woken: what has been acknowledged, or seen, is on disk. Where the journal has a thread of its
own, the next batches are applied meanwhile; they wait for their own append, and are answered in their order.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from pumice.actors.api_server.pulls import Pulls
from pumice.actors.errors import ActorFailedError, words_of
from pumice.actors.runtime.actor import Actor
from pumice.actors.runtime.level_signal import LevelSignal
from pumice.actors.runtime.longest import Laps
from pumice.cluster.api import refusals
from pumice.cluster.api.verbs.requests import decoded
from pumice.core.messages import commands, replies
from pumice.core.messages.commands import Append, Entry, FaultsRead, Pull, ReadFaults, Reflect
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object, is_mapping
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from pumice.actors.runtime.actor import Context
    from pumice.actors.runtime.envelope import Answer, Received
    from pumice.actors.system.ports import ApiPort, RecorderPort
    from pumice.cluster.api.store import Store
    from pumice.cluster.api.watch import ChangeLog

    Requests = Sequence[Received[commands.StoreRequest, replies.ApiReply]]

# --- Names of requests


def told_of(request: commands.StoreRequest) -> str:
    """Return the object's name for errors, as `Pod default/a at the api server`; only the receiver for an object
    without a name.
    """
    about = [str(getattr(request, part, "")) for part in ("kind", "namespace", "name")]
    if isinstance(request, commands.Create | commands.LoadObject | commands.Update):
        obj = decoded(request.blob)
        about = [] if isinstance(obj, Refused) else _named(obj)
    kind, *named = about or [""]
    return " ".join(part for part in (kind, "/".join(part for part in named if part), "at the api server") if part)


def _named(obj: Object) -> list[str]:
    meta: Any = obj.get("metadata")
    found = [obj.get("kind"), *([meta.get("namespace"), meta.get("name")] if is_mapping(meta) else [])]
    return [each if isinstance(each, str) else "" for each in found]


log = logging.getLogger(__name__)

_DECIDED: Final = (commands.BindPod, commands.EvictPod)
_TIMED: Final = (*_DECIDED, commands.Update)
"""Requests with a deadline for their answer."""
_CARRYING_OUT: Final = (*_DECIDED, Reflect)
"""Requests that may carry out a decision of the journal."""
_OF_THE_LOG: Final = (Pull, ReadFaults)
"""Requests that need only the log of the store."""
_NUMBER: Final = attrgetter("message.sequence")


class Applied(Struct, frozen=True):
    """A batch that is in the store: its requests and their answers, which are not delivered yet.

    `revision`: up to which the store had come, 0 when the batch changed nothing; `slot`: for the recorder's answer.
    """

    requests: Requests
    answers: Sequence[replies.ApiReply]
    revision: int = 0
    slot: Answer | None = None


class ApiServer(Actor[commands.ApiRequest, replies.ApiReply]):
    """The api server. `store` outlives a crash of this actor: it is the true state, and all of it is in the journal.

    `ahead`: so many batches may be on their way to the journal while the next one is applied.
    """

    cap = 512
    answers_later = True

    def __init__(
        self, name: str, mailbox: ApiPort, context: Context, *, store: Store, recorder: RecorderPort, ahead: int = 0
    ) -> None:
        super().__init__(name, mailbox, context)
        self.store = store
        self._ahead = ahead
        self._under_way: deque[Applied] = deque()
        self._unwritable: ActorFailedError | None = None
        self._sent, self._finished = LevelSignal(), LevelSignal()
        self._recorder = recorder
        self._alarm = context.alarm()
        self.waits_for = (recorder,)
        self._laps = Laps(context.longest)
        self._pulls = Pulls(name, self._readable(), gathers=context.inline_delivery)

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Answer requests whose changes have become durable."""
        return (self._finish_each,) if self._ahead else ()

    def delivers_inline(self, message: commands.ApiRequest) -> bool:
        """Return whether no batch is under way."""
        return not self._ahead

    async def on_stop(self) -> None:
        """Wait until all applied requests are answered."""
        await self._finished.wait_beyond(self._sent.value - 1)

    def at_end(self) -> None:
        """Answer the watchers, which come again if there is another server after this one. Unwritten changes are
        lost.
        """
        for batch in self._under_way:
            for item in batch.requests:
                if self._unwritable is not None:
                    item.fail(self.name, words_of(self._unwritable), world=True)
                else:
                    item.fail(self.name, "crashed before it was in the journal")
            self.activity.end()
        self._under_way.clear()
        self._pulls.give_up("stopped, or crashed, before there was news", stopped=self.mailbox.closed)

    async def on_start(self) -> None:
        """Publish the present content of the store (changes that a crash left unwritten go to the journal first)."""
        if entries := self._entries({}):
            await self._record(entries)
        self._publish()

    async def handle_batch(self, batch: Sequence[Received[commands.ApiRequest, replies.ApiReply]]) -> None:
        """Apply, make durable, answer, wake."""
        requests = _as_decided(self._for_the_store(batch))
        if not requests:
            return
        now = self.clock.now()
        causes: dict[int, int] = {}
        answers: list[replies.ApiReply] = []
        self._laps.begin()
        for item in requests:
            answers.append(self._apply(item.message, now, causes))
            self._laps.lap(type(item.message).__name__, partial(told_of, item.message))
        entries = self._entries(causes)
        if self._ahead:
            await self._send(Applied(requests, answers), entries)
            return
        if entries:
            await self._record(entries)
        self._acknowledge(Applied(requests, answers, self.store.revision if entries else 0))

    def _for_the_store(self, batch: Sequence[Received[Any, replies.ApiReply]]) -> Requests:
        """Answer pulls and requests for counts, which must not wait for the journal, and return the requests to the
        store.
        """
        of_the_log = [item for item in batch if type(item.message) in _OF_THE_LOG]
        for item in of_the_log:
            if type(item.message) is Pull:
                self._pulls.take(item)
            else:
                item.reply(FaultsRead(self._struck()))
        return [item for item in batch if type(item.message) not in _OF_THE_LOG] if of_the_log else batch

    def _struck(self) -> dict[str, int]:
        """Return the number of faults made, by kind."""
        return {}

    def _apply(self, request: commands.StoreRequest, now: float, causes: dict[int, int]) -> replies.ApiReply:
        """Carry out a request of a batch; `causes` gets the journal number of the decision that led to a revision."""
        decision = before = 0
        if isinstance(request, _TIMED) and self._alarm.now() >= request.until:
            # The asker has given up and reported the outcome as unknown: carried out now, it would contradict the
            # retry.
            return refusals.timed_out()
        if isinstance(request, _CARRYING_OUT):
            # A decision may write several revisions (a pod and its claims); all of them name it as their cause.
            decision, before = request.sequence, self.store.revision
        try:
            return self.store.apply(request, now)
        except Exception as error:
            # one unforeseen request must not take the cluster with it; it is a bug all the same, and says so
            log.exception("bug in Pumice: the api could not carry out %s", type(request).__name__)
            return replies.Refused(500, "InternalError", f"bug in Pumice: {error!r}")
        finally:
            if decision:
                causes.update(dict.fromkeys(range(before + 1, self.store.revision + 1), decision))

    def _entries(self, causes: Mapping[int, int]) -> list[Entry]:
        """Return the store's changes since the last call; `causes`: the journal number of the deciding record, by
        revision.
        """
        # Drained even when a request failed half-way: what is in the store must be in the journal before anyone sees
        # it.
        changes = self.store.drain()
        payloads = codec.encode_many(changes)
        self._pulls.encoded(changes, payloads)
        both = zip(changes, payloads, strict=True)
        return [Entry("api", payload, causes.get(change.revision, 0)) for change, payload in both]

    async def _record(self, entries: Sequence[Entry]) -> None:
        """Write the store's changes to the journal, even when this actor is cancelled meanwhile."""
        # `through`: a cancelled actor waits for the write, or a restarted one would write the same changes again.
        await self._recorder.ask(Append(tuple(entries)), through=True)

    # --- batches under way to the journal

    async def _send(self, batch: Applied, entries: Sequence[Entry]) -> None:
        """Have a batch written while the next one is applied, once there are not too many. A crash from here on still
        has this batch answered.
        """
        if entries:
            slot = await self._recorder.ask_later(Append(tuple(entries)), through=True)
            batch = Applied(batch.requests, batch.answers, self.store.revision, slot)
        self.activity.begin()
        self._under_way.append(batch)
        for item in batch.requests:
            # From here on a crash of this actor does not fail the askers: `_finish_oldest` answers them.
            item.settled = True
        self._sent.raise_to(self._sent.value + 1)
        # A bound on batches under way: without it a slow disk would fill memory with unanswered requests.
        await self._finished.wait_beyond(self._sent.value - 1 - self._ahead)

    async def _finish_each(self) -> None:
        while True:
            await self._sent.wait_beyond(self._finished.value)
            await self._finish_oldest()

    async def _finish_oldest(self) -> None:
        """Finish the batch, also when cancelled: the store's changes are journalled, and the askers are answered."""
        batch = self._under_way[0]
        if batch.slot is not None:
            try:
                await self._recorder.answered(batch.slot, through=True)
            except ActorFailedError as error:
                # A full disk is not this actor's fault; the askers must get the disk's error, not "crashed".
                self._unwritable = error if error.world else None
                raise
        self._under_way.popleft()
        self._acknowledge(batch)
        self._finished.raise_to(self._finished.value + 1)
        self.activity.end()

    async def _live(self) -> None:
        try:
            await super()._live()
        finally:
            while self._under_way:
                await self._finish_oldest()

    def _acknowledge(self, batch: Applied) -> None:
        """Answer the requests of a durable batch."""
        for item, answer in zip(batch.requests, batch.answers, strict=True):
            item.reply(answer)
        # Watchers after the askers, and both after the disk: no client may act on a change that a power cut could undo.
        if batch.revision:
            self._publish(batch.revision)

    def _readable(self) -> ChangeLog:
        """Return the log that watchers read."""
        return self.store.log

    def _publish(self, revision: int | None = None) -> None:
        """Publish the changes up to this revision, or all. On the board watchers are behind from now on, not only once
        they are awake.
        """
        revision = self.store.revision if revision is None else revision
        changed = self.store.publish(revision)
        # Before the watchers wake: "idle" must not be true between a change and the first look at it.
        self.activity.published(revision, changed)
        self._pulls.published(changed)


def _as_decided(requests: Requests) -> Requests:
    """Return a batch with its binds and evictions in the order of their decisions: workers race, and pods that begin
    at one moment end at one, in this order. All other requests keep their places.
    """
    places = [place for place, item in enumerate(requests) if isinstance(item.message, _DECIDED)]
    if len(places) < 2:
        return requests
    ordered = [*requests]
    for place, item in zip(places, sorted([requests[place] for place in places], key=_NUMBER), strict=True):
        ordered[place] = item
    return ordered
