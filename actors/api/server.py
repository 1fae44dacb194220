"""The api server: the truth about the cluster, as kube-apiserver and etcd are.

Owns: the store (`actors.api.store`); nobody else writes it.
Accepts: `ApiRequest`; every one is answered, with a refusal at worst.
Sends: asks the recorder. Who watches pulls, and is answered when there is news (`actors.api.pulls`).
When full: whoever asks waits. The api waits for nobody but the recorder, so it always moves on.
Stops: after what is queued has been made durable and answered.

A batch of requests is applied in order, its changes go to the journal in one append, and only then is anybody answered
or any watcher woken: what has been acknowledged, or seen, is on disk.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import anyio

from actors.api import refusals
from actors.api.pulls import Pulls
from actors.runtime.actor import Actor
from actors.runtime.longest import Laps
from core.messages import commands, recording, replies
from core.messages.reflection import Reflect
from core.messages.watch import Pull
from storage import codec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from actors.api.store import Store
    from actors.api.watch import ChangeLog
    from actors.runtime.context import Context
    from actors.runtime.envelope import Received
    from actors.system.ports import ApiPort, RecorderPort

log = logging.getLogger(__name__)

_DECIDED: Final = (commands.BindPod, commands.EvictPod)
"""Requests of those who wait for an answer no longer than until a moment."""
_CARRYING_OUT: Final = (*_DECIDED, Reflect)
"""Requests that may carry out a decision of the journal."""


class ApiServer(Actor[commands.ApiRequest, replies.ApiReply]):
    """`store` outlives a crash of this actor: it is the truth, and what is in it is in the journal."""

    cap = 512
    answers_later = True

    def __init__(self, name: str, mailbox: ApiPort, context: Context, *, store: Store, recorder: RecorderPort) -> None:
        super().__init__(name, mailbox, context)
        self.store = store
        self._recorder = recorder
        self._laps = Laps(context.longest)
        self._pulls = Pulls(name, self._readable())

    def at_end(self) -> None:
        """Who watches comes again, if there is another server after this one."""
        self._pulls.give_up("stopped, or crashed, before there was news", stopped=self.mailbox.closed)

    async def on_start(self) -> None:
        """Let watchers see what the store holds already (what a crash left unwritten goes to the journal first)."""
        await self._record(self._entries({}))
        self._publish()

    async def handle_batch(self, batch: Sequence[Received[commands.ApiRequest, replies.ApiReply]]) -> None:
        """Apply, make durable, answer, wake."""
        requests = self._without_pulls(batch)
        if not requests:
            return
        now = self.clock.now()
        causes: dict[int, int] = {}
        answers: list[replies.ApiReply] = []
        self._laps.begin()
        for item in requests:
            answers.append(self._apply(item.message, now, causes))
            self._laps.lap(type(item.message).__name__, "at the api server")
        entries = self._entries(causes)
        await self._record(entries)
        for item, answer in zip(requests, answers, strict=True):
            item.reply(answer)
        if entries:
            self._publish()

    def _without_pulls(
        self, batch: Sequence[Received[Any, replies.ApiReply]]
    ) -> Sequence[Received[commands.StoreRequest, replies.ApiReply]]:
        """What is there to be pulled is pulled before anything else is done: it must not wait for the journal."""
        pulls = [item for item in batch if type(item.message) is Pull]
        for item in pulls:
            self._pulls.take(item)
        return [item for item in batch if type(item.message) is not Pull] if pulls else batch

    def _apply(self, request: commands.StoreRequest, now: float, causes: dict[int, int]) -> replies.ApiReply:
        """Carry out a request of a batch; `causes` gets the number of the decision that a revision comes of."""
        decision = before = 0
        if isinstance(request, _CARRYING_OUT):
            if isinstance(request, _DECIDED) and anyio.current_time() >= request.until:
                return refusals.timed_out()
            decision, before = request.sequence, self.store.revision
        try:
            return self.store.apply(request, now)
        except Exception as error:
            # one request nobody foresaw must not take the cluster with it; it is a bug all the same, and says so
            log.exception("bug in Pumice: the api could not carry out %s", type(request).__name__)
            return replies.Refused(500, "InternalError", f"bug in Pumice: {error!r}")
        finally:
            if decision:
                causes.update(dict.fromkeys(range(before + 1, self.store.revision + 1), decision))

    def _entries(self, causes: Mapping[int, int]) -> list[recording.Entry]:
        """What has changed in the store since this was last asked; `causes`: the journal number of what decided it, by
        revision.
        """
        changes = self.store.drain()
        payloads = codec.encode_many(changes)
        self._pulls.encoded(changes, payloads)
        both = zip(changes, payloads, strict=True)
        return [recording.Entry("api", payload, causes.get(change.revision, 0)) for change, payload in both]

    async def _record(self, entries: Sequence[recording.Entry]) -> None:
        """What is in the store is in the journal, whoever takes this actor away in between."""
        if entries:
            await self._recorder.ask(recording.Append(tuple(entries)), through=True)

    def _readable(self) -> ChangeLog:
        """What watchers read."""
        return self.store.log

    def _publish(self) -> None:
        """Let those see it who watch. On the board they are behind from now on, not only once they are awake."""
        changed = self.store.publish()
        self.activity.published(self.store.revision, changed)
        self._pulls.published(changed)
