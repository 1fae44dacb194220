# SPDX-License-Identifier: Apache-2.0
"""The pre-bind worker: it binds pods whose claims need a write before, and waits for these writes beside its other
work.

Owns: the binds that wait for their volumes (`WaitingBinds`, which outlives a crash).
Accepts: `BindOrder`, of binds with `pre_bind` only.
Sends: asks the api (get, update, watch, `BindPod`); tells the cache and the recorder the outcomes, the status writer
why a pod could not be bound, the metrics how long binds took.
When full: the session runner waits; waiting for volumes does not fill it, that is done beside the mailbox.
Stops: after the orders that are queued. Binds that wait are lost with it, and their pods pending again after a restart.

For each bind: what the volumes and devices need is written, with the resource version that was read; then the pod's
claims are watched until all are bound; then the pod is bound. Whatever fails, what was written is taken back where it
has not come true, and the outcome says so: the cache forgets the bind and looks at the pod again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from pumice.actors.effects.effect_worker import EffectWorker, RecentOperations
from pumice.actors.errors import ActorFailedError
from pumice.actors.runtime.mailbox import expected
from pumice.cluster.kernel.effects import binding, operation
from pumice.cluster.kernel.pre_bind import (
    USER,
    Device,
    Place,
    PreBindError,
    Write,
    awaited_places,
    claim_place,
    has_device,
    is_ready,
    taken_back,
    writes_of,
)
from pumice.cluster.kube.events import FAILED, not_bound, not_prepared
from pumice.core.messages.commands import (
    BindOrder,
    BindPod,
    Get,
    Pull,
    Pulled,
    ReadRevision,
    RevisionRead,
    Update,
    WriteStatus,
)
from pumice.core.messages.decisions import Bind, PodCondition
from pumice.core.messages.events import BindRefused, BindTimedOut, Bound, TasksBound
from pumice.core.messages.replies import Accepted, Done, Refused
from pumice.core.objects.metadata import Object
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Unpack

    from pumice.actors.effects.effect_worker import EffectPorts
    from pumice.actors.runtime.actor import Context
    from pumice.actors.system.ports import BindPort, MetricsPort, StatusPort
    from pumice.core.messages.commands import ApiRequest
    from pumice.core.messages.replies import ApiReply

# --- Waiting binds: they outlive a crash of the worker


@dataclass(frozen=True, slots=True)
class WaitingBind:
    """A bind that waits. `deadline`: event-loop time, seconds. `created`: when its pod was made; None when unknown."""

    bind: Bind
    cycle: int
    sequence: int
    decided_at: float
    deadline: float
    created: float | None = None

    @property
    def cause(self) -> str:
        """Return the operation id."""
        return operation(self.cycle, self.bind)


@dataclass
class WaitingBinds:
    """Binds that were written to the api and are not bound yet, by operation id, oldest first; and the recent
    operations.

    `holders`: the claim that was to have a device last, as far as is known here.
    """

    by_cause: dict[str, WaitingBind] = field(default_factory=dict[str, WaitingBind])
    holders: dict[Device, Place] = field(default_factory=dict[Device, Place])
    recent: RecentOperations = field(default_factory=RecentOperations)

    @property
    def next_at(self) -> float:
        """Return when the first bind runs out of time."""
        return min((each.deadline for each in self.by_cause.values()), default=float("inf"))

    def binds(self) -> list[Bind]:
        """Return the binds that wait."""
        return [each.bind for each in self.by_cause.values()]

    def places(self) -> set[Place]:
        """Return all objects that binds wait for."""
        return {place for each in self.by_cause.values() for place in awaited_places(each.bind)}


CONFLICTS = 5
"""How often an object is read again because another client wrote it in between."""
WATCHED = ("PersistentVolumeClaim", "Pod")
AGAIN_S = 0.02


class NoAnswerError(PreBindError):
    """The api gave no answer: the outcome is unknown."""


class PreBindWorker(EffectWorker[BindOrder]):
    """Binds pods whose claims need a write before.

    A bind is here a small transaction: write, wait for the volumes, bind; and if any of it fails, take back what was
    written and report the bind as failed.
    """

    def __init__(
        self,
        name: str,
        mailbox: BindPort,
        context: Context,
        *,
        status: StatusPort,
        metrics: MetricsPort,
        waiting: WaitingBinds,
        **ports: Unpack[EffectPorts],
    ) -> None:
        super().__init__(name, mailbox, context, **ports)
        self._objects = context.objects
        self._status = status
        self._metrics = metrics
        self._waiting = waiting
        self._lock = anyio.Lock()
        self._more = anyio.Event()
        self._pulling = anyio.CancelScope()
        self._revision = -1
        self._note_timers()

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Wait for claims."""
        return (self._watch,)

    async def handle(self, message: BindOrder) -> Done:
        """Write what the binds need, and check each immediately: it may have nothing to wait for."""
        async with self._lock:
            for place, bind in enumerate(message.binds):
                deadline = anyio.current_time() + (bind.pre_bind.timeout_s if bind.pre_bind else 0.0)
                sequence = message.first_sequence + place
                created = message.created[place] if message.created else None
                waiting = WaitingBind(bind, message.cycle, sequence, message.decided_at, deadline, created)
                if self._waiting.recent.is_new(waiting.cause):
                    self._waiting.by_cause[waiting.cause] = waiting
                if waiting.cause in self._waiting.by_cause:  # also when a crash cut its writes off
                    await self._prepare(waiting)
            await self._look()
        return Done()

    # --- writing

    async def _prepare(self, waiting: WaitingBind) -> None:
        try:
            await self._demand_devices(waiting.bind)
            for write in writes_of(waiting.bind):
                await self._write(write, undo=False)
        except PreBindError as error:
            await self._fail(waiting, str(error))

    async def _demand_devices(self, bind: Bind) -> None:
        """Check that no other pod has got the devices. A pod that ended before its claim was written had them as well,
        and the decider did not know of it. Volumes name their claim, devices do not.
        """
        holders = self._waiting.holders
        for claimed in bind.pre_bind.devices if bind.pre_bind is not None else ():
            place = claim_place(claimed.claim, "ResourceClaim")
            for _, *device in claimed.devices:
                driver, pool, name = device
                other = holders.get((driver, pool, name), place)
                if other != place and has_device((await self._read([other]))[other], (driver, pool, name)):
                    raise PreBindError(f'device "{driver}/{pool}/{name}" was taken by claim "{other[1]}/{other[2]}"')
                holders[driver, pool, name] = place

    async def _write(self, write: Write, *, undo: bool) -> None:
        """Write, with a deadline: a late write would be in the way of newer decisions. An undo may come late."""
        for _ in range(CONFLICTS):
            after = write.after(await self._read(write.places), undo=undo)
            if after is None:
                return
            until = math.inf if undo else self._until()
            reply = await self._ask(Update(codec.pack(after), user=USER, until=until))
            if isinstance(reply, Accepted):
                return
            if not (isinstance(reply, Refused) and reply.code == 409):
                raise PreBindError(reply.message if isinstance(reply, Refused) else "no answer")
        raise PreBindError(f"{' '.join(part for part in write.place if part)} is written by others all the time")

    async def _read(self, places: Sequence[Place]) -> dict[Place, Object | None]:
        replies = await self._api.ask_many([Get(*place) for place in places], within_s=self._timeout_s)
        found: dict[Place, Object | None] = {}
        for place, reply in zip(places, replies, strict=True):
            if reply is None or (isinstance(reply, Refused) and reply.code != 404):
                raise NoAnswerError("no answer" if reply is None else reply.message)
            found[place] = codec.unpack(reply.blob) if isinstance(reply, Accepted) else None
        return found

    async def _ask(self, request: ApiRequest) -> ApiReply | None:
        (reply,) = await self._api.ask_many([request], within_s=self._timeout_s)
        return reply

    # --- waiting

    async def _watch(self) -> None:
        while True:
            if not self._waiting.by_cause:
                self._more = anyio.Event()
                await self._more.wait()
            found = await self._pull()
            # Between the news and the binds that follow from it the system must not look idle.
            with self.activity.busy():
                async with self._lock:
                    if self._is_news(found):
                        await self._look()

    async def _pull(self) -> Pulled | None:
        """Return the changes. None: the way to the api is broken, the time of a bind is up, or the pull must be
        repeated.
        """
        with anyio.CancelScope(deadline=self._waiting.next_at) as self._pulling:
            try:
                return expected(await self._api.ask(Pull(self.name, self._revision, WATCHED)), Pulled)
            except ActorFailedError:
                await anyio.sleep(AGAIN_S)
        return None

    def _is_news(self, found: Pulled | None) -> bool:
        """Return whether a change concerns a waiting bind, or its time is up."""
        if found is None:
            return anyio.current_time() >= self._waiting.next_at
        anew = found.gone or self._revision < 0
        self._revision = max(self._revision, found.revision)
        places = self._waiting.places()
        changes = self._objects.changes(found.revisions, found.events)
        return anew or any((each.kind, each.namespace, each.name) in places for each in changes)

    async def _look(self) -> None:
        """Bind the ready ones, and give up those that never will be."""
        if self._revision < 0:
            # Before the objects are read: a change between the two is in the next pull.
            newest = await self._ask(ReadRevision())
            self._revision = newest.revision if isinstance(newest, RevisionRead) else -1
        ready: list[WaitingBind] = []
        unanswered = False
        for waiting in list(self._waiting.by_cause.values()):
            try:
                complete = is_ready(waiting.bind, await self._read(awaited_places(waiting.bind)))
            except NoAnswerError:
                unanswered = True
                complete = False
            except PreBindError as error:
                await self._fail(waiting, str(error))
                continue
            if complete:
                ready.append(waiting)
            elif anyio.current_time() >= waiting.deadline:
                await self._fail(waiting, "its volumes were not bound in time")
        await self._bind(ready)
        if unanswered:
            await anyio.sleep(AGAIN_S)
        if unanswered or not self._waiting.by_cause:
            self._revision = -1  # look again soon; or the reading ends, and the next one begins with the newest
        self._pulling.deadline = -math.inf if unanswered else self._waiting.next_at  # of a pull held meanwhile
        self._note_timers()
        self._more.set()

    # --- ending

    async def _bind(self, ready: Sequence[WaitingBind]) -> None:
        """Send all binds together: a missing answer must not delay the others."""
        until = self._until()
        replies = await self._api.ask_many([_order(waiting, until) for waiting in ready], within_s=self._timeout_s)
        for waiting, reply in zip(ready, replies, strict=True):
            await self._settle(waiting, reply)

    async def _settle(self, waiting: WaitingBind, reply: ApiReply | None) -> None:
        bind = waiting.bind
        whose = (waiting.cause, waiting.sequence, bind.namespace, bind.name, bind.uid, bind.node)
        if isinstance(reply, Accepted):
            del self._waiting.by_cause[waiting.cause]
            await self._outcomes.report([Bound(*whose, reply.revision)])
            now, created = self.clock.now(), waiting.created
            await self._metrics.tell(
                TasksBound((now - waiting.decided_at,), () if created is None else (now - created,))
            )
        elif isinstance(reply, Refused):
            await self._fail(waiting, reply.message, reply)
        else:  # bound or not: nothing may be taken back before that is known
            del self._waiting.by_cause[waiting.cause]
            await self._outcomes.report([BindTimedOut(*whose, "no answer")])

    async def _fail(self, waiting: WaitingBind, why: str, refused: Refused | None = None) -> None:
        """Take back the writes, report the failure on the pod, and have the cache look at it again."""
        bind = waiting.bind
        del self._waiting.by_cause[waiting.cause]
        # Without this bind, which is deleted above: `taken_back` spares what the others wait for too.
        for write in taken_back(bind, self._waiting.binds()):
            try:
                await self._write(write, undo=True)
            except PreBindError:
                continue  # gone, or in other hands: nothing of ours is left there
        pod = f"{bind.namespace}/{bind.name}"
        said = not_prepared(pod, why) if refused is None else not_bound(bind.node, why)
        condition = PodCondition(bind.namespace, bind.name, bind.uid, FAILED, said)
        # Before the outcome, after which the pod may be bound anew: a late condition would be laid over a bound pod.
        await self._status.tell(WriteStatus(waiting.cycle, (condition,)))
        whose = (waiting.cause, waiting.sequence, bind.namespace, bind.name, bind.uid, bind.node)
        code, reason = (refused.code, refused.reason) if refused is not None else (0, "PreBindFailed")
        await self._outcomes.report([BindRefused(*whose, code, reason, why)])

    def _note_timers(self) -> None:
        self.activity.timers(self.name, len(self._waiting.by_cause))


def _order(waiting: WaitingBind, until: float) -> BindPod:
    return binding(waiting.bind, waiting.cause, waiting.sequence, until)
