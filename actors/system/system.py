# SPDX-License-Identifier: Apache-2.0
"""The whole system: started, used and stopped. The actors and the sends between them stand in `actors.system.roles`.

What is not stated there: answers fill a slot and never block. What is held by reference stands in
`pumice.actors.system.references`.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import cast

import anyio
from msgspec import convert, structs

from pumice.actors.errors import ActorStoppedError, LeaseLostError, chief
from pumice.actors.gateway.settings import REVISIONS_PER_S
from pumice.actors.metrics.summary import RunSummary, Summary
from pumice.actors.reconcilers.config_watcher import take_over
from pumice.actors.runtime.activity import SCHEDULER
from pumice.actors.runtime.clock import Clock
from pumice.actors.runtime.mailbox import ask_again, ask_many_again, expected
from pumice.actors.scheduling.cycle_memory import PERMITTED, SEEN, SYNCED, CycleMemory
from pumice.actors.scheduling.decider import Decider
from pumice.actors.system.ports import ApiPort, ArrivalsPort, CachePort, MetricsPort, MirrorPort, RunnerPort
from pumice.actors.system.restart import recover, resolve, resolved
from pumice.actors.system.roles import ROLES
from pumice.actors.system.settings import SystemSettings, elsewhere, mirroring, playing
from pumice.actors.system.wiring import Wiring
from pumice.cluster.api.bootstrap import first_requests
from pumice.cluster.api.origin import entering
from pumice.core.messages import commands, replies
from pumice.core.messages.commands import Append, AwaitCycle, CyclesRun, Entry, RunCycle, TellQueues
from pumice.core.messages.events import ConfigLoaded, Mirrored, ReadMirrored, ShadowTold
from pumice.core.messages.message import Message
from pumice.core.objects.metadata import Object
from pumice.core.objects.parts import WATCHED
from pumice.storage import codec
from pumice.storage.journal import CONFIG, Journal, Record
from pumice.storage.shared_objects import SharedObjects

LOOK_AGAIN_S = 0.1


class System(Wiring):
    """One scheduler with its api, agents and controllers, on one journal, which it does not close.

    Raises ConfigError immediately for a bad configuration. `decider` replaces the core (tests); `objects` is the table
    of what is decoded, where others than its actors read the same.
    """

    def __init__(
        self,
        settings: SystemSettings,
        journal: Journal,
        clock: Clock,
        *,
        decider: Decider | None = None,
        objects: SharedObjects | None = None,
    ) -> None:
        super().__init__(ROLES, settings, journal, clock, self._note, decider, objects)
        self._summary = Summary(self.api, self.context, self.store.listings)
        self._began = 0.0

    # --- using it

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[System]:
        """Recover the journal's state, run everything, stop in order. Raises the error of a crashed vital actor."""
        # Both are the process's and not the system's: a process may run several systems, one after the other.
        thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
        gc.set_threshold(*self.settings.gc_thresholds or thresholds)
        sys.setswitchinterval(self.settings.switch_interval_s or interval)
        try:
            await self._recover()
            self._began = anyio.current_time()
            async with anyio.create_task_group() as tasks:
                await tasks.start(self.supervisor.run)
                gateway = self.settings.gateway
                if playing(self.settings):
                    first = first_requests(
                        self.settings.default_queues,
                        gateway.address if gateway else None,
                        installed=self.store.kinds.installed,
                        roles=gateway is not None and gateway.authorization == "rbac",
                    )
                    # Through the mailbox like all other requests: only so they are in the journal.
                    await ask_many_again(self.api, first)
                # A group of its own: it is cancelled before the supervisor stops, while the actors that it asks still
                # answer.
                async with anyio.create_task_group() as beside:
                    if elsewhere(self.settings):
                        beside.start_soon(self._schedule_there)
                    yield self
                    beside.cancel_scope.cancel()
                self.supervisor.stop()
        except BaseExceptionGroup as group:
            raise chief(group) from None
        finally:
            gc.set_threshold(*thresholds)
            sys.setswitchinterval(interval)

    async def submit(self, objects: Sequence[Object]) -> list[replies.Accepted | replies.Refused]:
        """Submit the objects in order: new ones are created, those of a cluster loaded (`pumice.cluster.api.origin`).

        Returns one answer each. Each is durable when it is accepted. Where the api crashed meanwhile all are
        asked again, and some are then refused as being there already.
        """
        answers = await ask_many_again(self.api, [entering(each) for each in objects])
        return [cast("replies.Accepted | replies.Refused", answer) for answer in answers]

    async def announce(self, arrivals: Sequence[commands.Announced]) -> None:
        """Have these objects created at their times; needs `settings.arrivals`."""
        await self._arrivals.ask(commands.Announce(tuple(arrivals)))

    async def until_idle(self) -> None:
        """Wait until nothing is in flight, no timer is due and another cycle would change nothing."""
        await self.context.activity.wait_idle()

    async def until_cycles(self, number: int) -> None:
        """Wait until so many cycles have been run, those before a restart included."""
        await self._cycle(number)

    async def cycles(self) -> int:
        """Return the number of the newest cycle, with those before a restart."""
        return await self._cycle(0)

    async def run_cycle(self) -> None:
        """Run a cycle now, changed or not."""
        await self._runner.ask(RunCycle())

    async def metrics_text(self) -> bytes:
        """Return Prometheus' text format."""
        if self.settings.scheduler:
            # First: queues and cards are told to the metrics only when they are read, which spares each cycle that
            # work.
            await ask_again(self._runner, TellQueues())
        metrics: MetricsPort = self.switchboard.mailboxes["metrics"]
        return (expected(await metrics.ask(commands.Expose()), replies.Exposition)).text

    @property
    def api(self) -> ApiPort:
        """Return the api server's mailbox, which gateways and command lines use."""
        return self.switchboard.mailboxes["api-server"]

    @property
    def _arrivals(self) -> ArrivalsPort:
        return self.switchboard.mailboxes["arrivals"]

    @property
    def _runner(self) -> RunnerPort:
        return self.switchboard.mailboxes["session-runner"]

    async def _cycle(self, number: int) -> int:
        """Wait for a cycle, where a runner exists, and return the newest one's number."""
        if mirroring(self.settings):
            return (await self._mirrored()).cycle
        if not self.settings.scheduler:
            return self.recovered.cycle
        reply = await ask_again(self._runner, AwaitCycle(number))
        return expected(reply, CyclesRun).cycle

    async def _mirrored(self) -> Mirrored:
        mirror: MirrorPort = self.switchboard.mailboxes["mirror"]
        reply = await ask_again(mirror, ReadMirrored())
        return expected(reply, Mirrored)

    async def has_seen(self) -> bool:
        """Return whether another cluster was seen as a whole since the start."""
        return (await self._mirrored()).seen if mirroring(self.settings) else self.permission.value >= SEEN

    async def summary(self) -> RunSummary:
        """Return the report of `pumice run` at its end, without `db`; seconds are on the event loop's clock."""
        found = await self._summary.report(await self.cycles(), anyio.current_time() - self._began)
        shadow = (await self._mirrored()).shadow if mirroring(self.settings) else b""
        return structs.replace(found, shadow=convert(codec.unpack(shadow), ShadowTold)) if shadow else found

    async def listed(self, kind: str) -> list[Object]:
        """Return all objects of a kind; none for a kind without objects."""
        return [*await self.each(kind)]

    async def each(self, kind: str) -> Iterator[Object]:
        """Yield the present objects one after the other: decoded they take ten times the memory."""
        # A handle to the stored bytes: a reply with all of them would copy the cluster once more.
        reply = await ask_again(self.api, commands.OpenListing(kind))
        blobs = self.store.listings.take(reply.handle) if isinstance(reply, replies.ListingOpened) else ()
        return map(codec.unpack, blobs)

    # --- starting

    async def _recover(self) -> None:
        """Recover the api's state, the cycle number and the carry, unfinished decisions, and the configuration in
        force.
        """
        self.recovered = await recover(self.journal, self.store.restore, self.store.load)
        now = self.context.clock.now()
        if not elsewhere(self.settings):  # there it is not yet known what became of them
            await resolve(self.journal, self.recovered, partial(self.store.get, "Pod"), now)
        config = self._config_in_force()
        if config:
            self.recovered.sequence = await self.journal.append([Record(CONFIG, config, 0, now)])
        cycle = self.recovered.cycle
        self.observed.newest = cycle
        # Before the supervisor runs: it has the actors built, and their builders read these attributes.
        self.memory = CycleMemory(self.changed, cycle, cycle, self.recovered.carry, self.changed.value)
        # A client may hold a resourceVersion of an earlier run, on another journal: it must not lie in this one's
        # future.
        if self.settings.gateway is not None:
            self.store.begin_after(int(now * REVISIONS_PER_S))
        self.context.activity.published(self.store.log.published)
        # Where no scheduler runs nothing else would say that it is at rest, and no run would ever be idle.
        self.context.activity.settled(SCHEDULER, not self.settings.scheduler)

    def _config_in_force(self) -> bytes:
        """Return the configuration to journal, which is the one in force in the cluster; b"" when the journal knows
        it.
        """
        if self.settings.followed is not None:
            take_over(self.source, self.settings.followed, self.store.get)
        told, known = self.source.loaded.told(), self.recovered.config
        return codec.encode(told) if known is None or _differ(told, known) else b""

    async def _schedule_there(self) -> None:
        """Begin once the scheduler sees the whole cluster: an earlier process's decisions are resolved by their results
        there. Raises LeaseLostError when another scheduler may be at work.
        """
        await self.permission.wait_beyond(SYNCED - 1)
        entries = [
            Entry("outcome", codec.encode(outcome), outcome.sequence)
            for outcome in resolved(self.recovered, partial(self.store.get, "Pod"))
        ]
        config = self._config_in_force()
        if config:
            entries.append(Entry("config", config))
        if entries:
            await self.switchboard.mailboxes["recorder"].ask(Append(tuple(entries)))
        # The first cycle must not decide on a part of the cluster.
        await self._until_seen()
        self.permission.raise_to(PERMITTED)
        # LOST is the only level above this one.
        await self.permission.wait_beyond(PERMITTED)
        raise LeaseLostError("the Lease is lost: another scheduler may be at work")

    async def _until_seen(self) -> None:
        """Wait until the scheduler's view has come as far as its kinds have."""
        cache: CachePort = self.switchboard.mailboxes["cache"]
        newest = max((self.store.log.head((kind,)) for kind in WATCHED), default=0)
        while expected(await cache.ask(commands.CheckView()), replies.ViewChecked).revision < newest:  # noqa: ASYNC110
            await anyio.sleep(LOOK_AGAIN_S)

    async def _note(self, events: Sequence[Message]) -> None:
        """Record events in the lives of actors; at its own end the recorder is gone."""
        entries = tuple([Entry("actor", codec.encode(event)) for event in events])
        with suppress(ActorStoppedError):
            await self.switchboard.mailboxes["recorder"].tell(Append(entries))


def _differ(told: ConfigLoaded, known: ConfigLoaded) -> bool:
    # Journals of earlier versions do not say it: unknown does not count as a difference.
    if known.default_duration_s is not None and told.default_duration_s != known.default_duration_s:
        return True
    return (told.digest, told.plugins) != (known.digest, known.plugins)
