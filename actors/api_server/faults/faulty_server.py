# SPDX-License-Identifier: Apache-2.0
"""The api server with a bad network before it: `faults` lose, delay, double and refuse requests.

Owns, accepts, sends, stops: as `actors.api_server.server`. What is held back belongs to the network and survives a
crash of this actor; at the end it is delivered immediately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final

from anyio import lowlevel
from msgspec import Struct

from pumice.actors.api_server.faults.network import Delivery, Network
from pumice.actors.api_server.server import ApiServer
from pumice.actors.errors import ActorFailedError, blames_the_world, words_of
from pumice.cluster.api.watch import Events
from pumice.core.messages import commands, replies
from pumice.core.messages.commands import BindPod, Delete, Entry, Patch, Restart, UpdateStatus
from pumice.core.objects.metadata import Object
from pumice.storage import codec

if TYPE_CHECKING:
    from pumice.actors.api_server.faults.strikes import Fault, Faults
    from pumice.actors.runtime.actor import Context
    from pumice.actors.runtime.envelope import Received
    from pumice.actors.system.ports import ApiPort, RecorderPort, SupervisorPort
    from pumice.cluster.api.store import Store
    from pumice.cluster.api.watch import ChangeLog, RevisionLog
    from pumice.core.messages.commands import StoreRequest

# --- The log behind a bad network: broken, replayed, or gone (410)

REPLAYED: Final = 10
"""Revisions that a replayed watch goes back."""


class FaultyLog:
    """The api's log as watchers see it under `faults`."""

    def __init__(self, log: RevisionLog, faults: Faults, network: Network) -> None:
        self._log = log
        self._faults = faults
        self._network = network

    def head(self, kinds: tuple[str, ...]) -> int:
        """Return the newest published revision of these kinds; delayed news must not become visible by it."""
        return self._log.head(kinds)

    def read(self, since: int, kinds: tuple[str, ...] = (), limit: int = 1000) -> Events:
        """Return the events of one reading of a watch. Raises ActorFailedError for a broken one."""
        log, fault = self._log, self._faults.strike_watch(kinds)
        match fault.what if fault is not None else "":
            case "watch-broken":
                raise ActorFailedError("api-server", "injected: the connection broke")
            case "watch-gone":
                return Events(log.published, gone=True)
            # Only while the log reaches back so far: a replay must not become a 410 by itself.
            case "watch-replayed" if since >= log.oldest:
                since = max(log.oldest, min(since, log.published) - REPLAYED)
            case "crash" if fault is not None:
                self._network.crash(fault.target, int(fault.amount))
            case _:
                pass
        return log.read(since, kinds, limit)


# --- Interference between a decision and its bind: nodes go or shrink, pods are deleted

USER: Final = "somebody-else"
SHRUNK: Final = {"allocatable": {"cpu": "1", "memory": "1Gi"}}


def disrupt(store: Store, what: str, bind: BindPod, now: float) -> None:
    """Disrupt the bind's node or pod in the store, before the bind is carried out."""
    requests: dict[str, StoreRequest] = {
        "bind-node-removed": Delete("Node", "", bind.node, user=USER),
        "bind-node-cordoned": Patch("Node", "", bind.node, _packed({"spec": {"unschedulable": True}}), USER),
        "bind-node-shrunk": UpdateStatus("Node", "", bind.node, _packed(SHRUNK), None, USER),
        "bind-pod-deleted": Delete("Pod", bind.namespace, bind.name, user=USER),
    }
    store.apply(requests[what], now)


def _packed(patch: Object) -> bytes:
    return codec.pack(patch)


REFUSALS: Final = {
    "bind-refused": replies.Refused(503, "ServiceUnavailable", "injected: the api is overloaded"),
    "status-conflict": replies.Refused(409, "Conflict", "injected: the object has been modified"),
    "claim-conflict": replies.Refused(409, "Conflict", "injected: the object has been modified"),
    "evict-blocked": replies.Refused(429, "TooManyRequests", "injected: it would violate the pod's disruption budget"),
}


class _Step(Struct):
    """One request of a batch; `item` is None when the asker is gone."""

    request: commands.StoreRequest
    item: Any
    answer: replies.ApiReply | None = None


class FaultyApiServer(ApiServer):
    """The api server with faults. `network` outlives this actor; the supervisor removes the clients that it crashes."""

    def __init__(
        self,
        name: str,
        mailbox: ApiPort,
        context: Context,
        *,
        store: Store,
        recorder: RecorderPort,
        faults: Faults,
        network: Network,
        supervisor: SupervisorPort,
    ) -> None:
        self._faults = faults
        self._network = network
        super().__init__(name, mailbox, context, store=store, recorder=recorder)
        self._supervisor = supervisor
        self._durable = 0  # up to this revision
        self._writing = 0  # so many turns wait for the journal

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Return the loop of the network's late deliveries and of crashes."""
        return (self._late,)

    def _readable(self) -> ChangeLog:
        return FaultyLog(self.store.log, self._faults, self._network)

    def _struck(self) -> dict[str, int]:
        return dict(Counter(fault.what for fault in self._faults.struck))

    async def on_stop(self) -> None:
        """Deliver what is still under way."""
        await self._deliver(self._network.take(float("inf")))

    async def handle_batch(self, batch: Sequence[Received[commands.ApiRequest, replies.ApiReply]]) -> None:
        """Carry out the requests that no fault strikes; late ones are carried out while this waits for the journal, and
        the reverse.
        """
        requests = self._for_the_store(batch)
        if not requests:
            return
        steps = [_Step(item.message, item) for item in requests]
        for step in steps:
            fault = self._faults.strike(step.request)
            if fault is not None:
                self._meet(step, fault)
        await self._carry_out(steps)

    async def _carry_out(self, steps: Sequence[_Step]) -> None:
        """Apply requests immediately; answer and publish once all changes so far are durable."""
        now = self.clock.now()
        causes: dict[int, int] = {}
        for step in steps:
            if step.answer is None and step.request is not _NOTHING:
                step.answer = self._apply(step.request, now, causes)
        entries = self._entries(causes)
        # An answer without changes of its own may tell of a change that an earlier turn is still writing.
        if entries or self._writing:
            await self._write(entries)
        for step in steps:
            if step.answer is not None and step.item is not None:
                step.item.reply(step.answer)
        # Delayed news are published by the network, when their time has come.
        if entries and not self._network.holds_news():
            self._publish(self._durable)

    async def _write(self, entries: Sequence[Entry]) -> None:
        """Write these records, and wait until they and all earlier ones are durable: the journal takes them in
        order.
        """
        revision = self.store.revision
        self._writing += 1
        try:
            await self._record(entries)
        finally:
            self._writing -= 1
        self._durable = max(self._durable, revision)

    # --- one fault

    def _meet(self, step: _Step, fault: Fault) -> None:
        what = fault.what
        if what == "crash":
            self._network.crash(fault.target, int(fault.amount))
        elif what in REFUSALS:
            step.answer = REFUSALS[what]
        elif what.endswith(("-delayed", "-reordered")):
            self._network.hold(fault.amount, request=step.request, item=step.item)
            step.request, step.item = _NOTHING, None
        elif what.endswith("-duplicated"):
            self._network.hold(fault.amount, request=step.request)
        elif what.endswith("-answered-late"):
            step.item = _Later(step.item, self._network, fault.amount)
        elif what.endswith("-lost"):
            step.item = _Lost(step.item, self.name)
        elif what == "bind-dropped":
            step.request, step.item = _NOTHING, None
        elif what == "bind-unanswered":
            step.item = None
        elif isinstance(step.request, commands.BindPod):
            disrupt(self.store, what, step.request, self.clock.now())

    # --- what comes late

    async def _late(self) -> None:
        while True:
            await self._crash_some()
            due = await self._network.wait()
            await self._deliver(self._network.take(due))

    async def _crash_some(self) -> None:
        while self._network.crashes:
            actor, steps = self._network.crashes.pop(0)
            for _ in range(steps):
                # Turns of the loop and not seconds: so a crash falls between two steps of an actor's work.
                await lowlevel.checkpoint()
            await self._supervisor.tell(Restart(actor, injected=True))

    async def _deliver(self, held: Sequence[Delivery]) -> None:
        if not held:
            return
        try:
            if any(each.news for each in held):
                self._publish(self._durable)
            steps = [_Step(each.request or _NOTHING, each.item, each.answer) for each in held if not each.news]
            if steps:
                await self._carry_out(steps)
        # Cancellations too: the asker must get an error, and not wait for ever.
        except BaseException as error:
            for each in held:
                if each.item is not None:
                    each.item.fail(self.name, words_of(error), world=blames_the_world(error))
            raise
        finally:
            self._network.delivered(len(held))


class _Later(Struct, frozen=True):
    """Give the answer to `item`'s asker later."""

    item: Any
    network: Network
    delay_s: float

    def reply(self, answer: replies.ApiReply) -> None:
        self.network.hold(self.delay_s, item=self.item, answer=answer)


class _Lost(Struct, frozen=True):
    """Leave `item`'s asker without an answer."""

    item: Any
    actor: str

    def reply(self, answer: replies.ApiReply) -> None:
        self.item.fail(self.actor, "injected: the answer was lost")


_NOTHING: Final = commands.Get("", "", "")


def api_server(
    own: tuple[str, Any, Context],
    ports: dict[str, Any],
    faults: Faults | None,
    network: Network,
    ahead: int,
) -> ApiServer:
    """Return the plain server, or one with faults before it, which carries out one batch after the other."""
    if faults is None:
        return ApiServer(*own, store=ports["store"], recorder=ports["recorder"], ahead=ahead)
    return FaultyApiServer(*own, **ports, faults=faults, network=network)
