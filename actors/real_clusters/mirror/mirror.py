# SPDX-License-Identifier: Apache-2.0
"""The mirror: it follows a real cluster, and makes the api here hold the same objects.

Owns: the connections to the cluster, what was heard and is not yet taken in, and the number of the newest cycle.
Accepts: `Poke`: take in now what was heard; `ReadMirrored`: say how far it is.
Sends: asks the api to reflect objects; asks the recorder for the cycles of the cluster's own scheduler, as far as they
are to be seen. Where a shadow is wanted, the metrics hear how alike it decides.
When full: the poker waits. What is heard is kept until the api has taken it.
Stops: after what was heard is taken in. What is not heard any more is heard after the next start, as the difference to
what is here.

It writes nothing to the cluster, for it has no request that could (`pumice.actors.real_clusters.remote`).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, assert_never

import anyio

from pumice.actors.real_clusters.mirror.changes import RemoteChange
from pumice.actors.real_clusters.mirror.cycles import CycleCutter, MarkedChange, ObservedCycle
from pumice.actors.real_clusters.mirror.intake import CONFIG_MAP, ORDER, Burst, Intake, resources
from pumice.actors.real_clusters.mirror.observed import Observed, ObservedCycles
from pumice.actors.real_clusters.mirror.redaction import PseudonymFile
from pumice.actors.real_clusters.mirror.shadow import Shadow
from pumice.actors.real_clusters.remote.api import RemoteApi
from pumice.actors.real_clusters.remote.backoff import Backoff
from pumice.actors.real_clusters.remote.reflector import Reflector
from pumice.actors.runtime.actor import Actor
from pumice.actors.runtime.mailbox import ask_again
from pumice.config.errors import RequestError
from pumice.core.messages.commands import List, Poke, Reflect
from pumice.core.messages.events import Mirrored, ReadMirrored
from pumice.core.messages.replies import Accepted, Done, Listing
from pumice.core.objects.metadata import Object
from pumice.core.objects.parts import WATCHED
from pumice.core.state.view import View
from pumice.storage import codec

if TYPE_CHECKING:
    from pumice.actors.real_clusters.mirror.settings import MirrorSettings
    from pumice.actors.runtime.actor import Context
    from pumice.actors.scheduling.config_source import ConfigSource
    from pumice.actors.system.ports import ApiPort, MetricsPort, MirrorPort, RecorderPort
    from pumice.core.messages.events import ShadowCompared

# --- Readability of objects

READ: Final = frozenset(WATCHED)


class Readability:
    """Tries objects on a view of its own, on which none of them stays."""

    def __init__(self) -> None:
        self._view = View()

    def problem(self, change: RemoteChange) -> str:
        """Return the problem of the object; "" without one. Another cluster's rules may differ from the known ones."""
        if change.kind not in READ or change.obj is None or change.gone:
            return ""
        obj: Object = change.obj
        try:
            # And removed: the view that tries objects must stay empty.
            self._view.apply("ADDED", obj)
            self._view.apply("DELETED", obj)
        except (RequestError, ValueError, TypeError, KeyError, AttributeError) as error:
            # The object may be half applied: the next one must not meet the rest of it.
            self._view = View()
            return str(error) or type(error).__name__
        return ""


BATCH = 500
"""Limit of changes on their way to the api at the same time: all of a large cluster would need double memory."""

LOOKS_S = 1.0
"""For so long it is tried out when a scheduler may have looked; a cycle of a large cluster takes a second alone."""

log = logging.getLogger(__name__)


class Mirror(Actor[Poke | ReadMirrored, Done | Mirrored]):
    """The mirror. `source` is the configuration of the cluster's scheduler, `memory` the number of its newest cycle
    here.
    """

    def __init__(
        self,
        name: str,
        mailbox: MirrorPort,
        context: Context,
        *,
        api: ApiPort,
        recorder: RecorderPort,
        metrics: MetricsPort,
        settings: MirrorSettings,
        source: ConfigSource,
        memory: ObservedCycles,
    ) -> None:
        super().__init__(name, mailbox, context)
        self._api = api
        self._settings = settings
        self._resources = resources(settings.config_map)
        self._names = PseudonymFile(settings.names) if settings.names else None
        self._burst = Burst(settings.period_s)
        self._intake = Intake(self._resources, self._names.redaction if self._names else None, self._burst)
        self._cutter = CycleCutter()
        self._memory = memory
        self._observed = Observed(recorder, context.clock, source, memory)
        shadow = settings.shadow
        self._shadow = Shadow(shadow, source, context.clock, recorder, metrics, memory.shadow) if shadow else None
        self._readability = Readability()
        self._turn = anyio.Lock()
        self._revision = self._told = 0

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Follow the cluster, and take its changes."""
        return (self._follow, self._work)

    async def on_start(self) -> None:
        """Take the present objects as known: any difference in the cluster is a change."""
        for kind in ORDER:
            reply = await ask_again(self._api, List(kind))
            for blob in reply.blobs if isinstance(reply, Listing) else ():
                obj = codec.unpack(blob)
                meta = obj["metadata"]
                self._cutter.know((kind, meta.get("namespace") or "", meta["name"]), obj)
                if self._shadow is not None:
                    self._shadow.know(kind, obj)

    async def on_stop(self) -> None:
        """Take all changes into a last cycle."""
        await self._take()

    async def handle(self, message: Poke | ReadMirrored) -> Done | Mirrored:
        """Take the present changes, or tell how far they were taken."""
        match message:
            case Poke():
                await self._take()
                return Done()
            case ReadMirrored():
                memory = self._memory
                shadow = b"" if self._shadow is None else codec.pack(memory.shadow.to_dict())
                return Mirrored(memory.newest, memory.seen or self._intake.whole, shadow)
            case _:
                assert_never(message)

    async def _follow(self) -> None:
        settings = self._settings
        remote = RemoteApi(settings.access, now=self.clock.now, transport=settings.transport)
        async with remote, anyio.create_task_group() as tasks:
            for resource in self._resources:
                backoff = Backoff(random.random, settings.retry_s)
                keep = partial(self._intake.kept, resource.key)
                reflector = Reflector(
                    remote, resource, self._intake, poll_s=settings.poll_s, backoff=backoff, keep=keep
                )
                tasks.start_soon(reflector.run)

    async def _work(self) -> None:
        """Take the changes of one period as one look, as the cluster's scheduler does; no look ends within one of its
        cycles.
        """
        while True:
            # With changes that no cycle has shown yet, a quiet cluster gets one more look, which records them.
            waits = self._revision > self._told or (self._shadow is not None and self._shadow.unsettled)
            await self._intake.wait(self._settings.period_s if waits else None)
            left = self._settings.period_s
            # Where watches wait for room, what has come is taken, whether or not a cycle has ended.
            while left > 0 and not await self._intake.is_full(left):
                left = self._burst.left_s(anyio.current_time())
            await self._take()
            if self._shadow is not None and self._intake.whole:
                await self._shadow.look(self._observed.newest, self.clock.now())

    async def _take(self) -> None:
        """Write down the changes; a last cycle without decisions shows those after the earlier cycles."""
        async with self._turn:
            heard = self._intake.take(self._cutter.names)
            self._memory.seen |= self._intake.whole
            if self._names is not None:
                # Before anything under a pseudonym is stored: a name that is lost could not be found again.
                self._names.save()
            cycles = self._cutter.cut([change for change in heard if self._can_be_read(change)])
            for cycle in cycles:
                await self._carry_out(cycle)
            if self._revision > self._told and not (cycles and cycles[-1].decided):
                await self._cycle(ObservedCycle(), self._revision)

    def _can_be_read(self, change: RemoteChange) -> bool:
        problem = self._readability.problem(change)
        if problem:
            log.warning("%s %s/%s is left out: %s", *change.key, problem)
        return not problem

    async def _carry_out(self, cycle: ObservedCycle) -> None:
        shadow = self._shadow if cycle.decided else None
        # Only where both decide by one configuration does their agreement tell when the scheduler looked.
        tries = shadow is not None and shadow.agreeing
        if cycle.decided and not tries:
            cycle.defer()
        place = cycle.part() if tries else len(cycle.before)
        await self._reflect(cycle.before[:place], 0)
        if not cycle.decided:
            return
        if shadow is None:
            first = await self._cycle(cycle, self._revision)
        else:
            place, found, revision = await self._looked(shadow, cycle, place)
            first = await self._cycle(cycle, revision)
            await shadow.compared(found)
        await self._reflect(cycle.before[place:], 0)
        # After the cycle is recorded: these changes name its decisions as their causes.
        await self._reflect(cycle.after, first)
        await self._observed.outcomes(cycle, first)

    async def _looked(self, shadow: Shadow, cycle: ObservedCycle, place: int) -> tuple[int, ShadowCompared, int]:
        """Find when the scheduler looked, which cannot be seen: at the first of the possible moments at which most
        decisions agree. Return the place in `before` up to which all is stored, the comparison at that moment, and its
        revision.
        """
        until, number, nominated = anyio.current_time() + LOOKS_S, self._observed.newest + 1, cycle.nominated()
        best, revision = shadow.beside(number, cycle.decided, nominated), self._revision
        while best.same < best.decisions and place < len(cycle.before):
            # Out of time: all the rest is stored in one go and compared one last time.
            following = cycle.following(place) if anyio.current_time() < until else len(cycle.before)
            await self._reflect(cycle.before[place:following], 0)
            place = following
            found = shadow.beside(number, cycle.decided, nominated)
            if found.same > best.same:
                best, revision = found, self._revision
        return place, best, revision

    async def _cycle(self, cycle: ObservedCycle, revision: int) -> int:
        self._told = self._revision
        return await self._observed.record(cycle, revision)

    async def _reflect(self, changes: Sequence[MarkedChange], first: int) -> None:
        """Store the changes; `first`: the journal number of the first decision. A new configuration is taken over."""
        for start in range(0, len(changes), BATCH):
            await self._store(changes[start : start + BATCH], first)
        for change in (each.change for each in changes if each.change.kind == CONFIG_MAP):
            if change.obj is not None and not change.gone:
                await self._observed.configure(change.obj, self._settings.config_map)

    async def _store(self, changes: Sequence[MarkedChange], first: int) -> None:
        replies = await self._api.ask_many([_request(each, first) for each in changes])
        for each, reply in zip(changes, replies, strict=True):
            if isinstance(reply, Accepted):
                self._revision = max(self._revision, reply.revision)
                if self._shadow is not None:
                    self._shadow.see(each.change)
            else:
                log.error("%s %s/%s could not be kept: %s", *each.change.key, reply)


def _request(marked: MarkedChange, first: int) -> Reflect:
    change, user, decision, _ = marked
    blob = b"" if change.gone or change.blob is None else change.blob
    return Reflect(*change.key, blob, user, 0 if decision is None else first + decision)
