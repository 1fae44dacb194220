"""The cluster: stands where the api stands for who carries out decisions, and carries them out on a real cluster.

Owns: the connections to the cluster, which version of each object was heard last, who waits for a request, the Lease.
Accepts: what the api accepts (`pumice.actors.real_clusters.cluster.desk` says what becomes of it).
Sends: asks the api to reflect what the cluster has, and what is left to it.
When full: nobody waits for room: who carries out decisions waits for each answer. The most urgent goes first.
Stops: when what it was asked for is done; what nobody answers any more is left to the next start, which looks at the
cluster. Then the Lease is given back.

Scheduling may begin once all of the cluster was listed and the Lease is ours. Losing it ends the process: from the
moment in which another one may have it, nothing is written.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from pumice.actors.errors import ActorFailedError, CredentialsError, RemoteError
from pumice.actors.real_clusters.cluster.client import ClusterClient
from pumice.actors.real_clusters.cluster.desk import PATIENCE_S, URGENCY, Desk, refused
from pumice.actors.real_clusters.cluster.effects import ClusterEffects
from pumice.actors.real_clusters.cluster.election import LeaseElection
from pumice.actors.real_clusters.cluster.hearing import ClusterHearing
from pumice.actors.real_clusters.cluster.line import Line, Urgency
from pumice.actors.real_clusters.cluster.places import QUEUE, collection
from pumice.actors.real_clusters.mirror.changes import change_of
from pumice.actors.real_clusters.remote.backoff import Backoff
from pumice.actors.real_clusters.remote.reflector import Reflector
from pumice.actors.runtime.actor import Actor
from pumice.actors.scheduling.cycle_memory import LOST, SEEN, SYNCED
from pumice.cluster.kube.events import Sayings
from pumice.core.messages.commands import ApiRequest, Create, Patch, ReportStatus
from pumice.core.messages.replies import ApiReply
from pumice.core.objects.metadata import Object

if TYPE_CHECKING:
    from pumice.actors.real_clusters.cluster.settings import ClusterSettings
    from pumice.actors.runtime.context import Context
    from pumice.actors.runtime.envelope import Received
    from pumice.actors.runtime.level_signal import LevelSignal
    from pumice.actors.system.ports import ApiPort
    from pumice.cluster.kube.scheduler_words import Said

    Asked = Received[ApiRequest, ApiReply]

Where = tuple[str, str, str]

QUEUES: Final = {"default": True, "root": False}
"""Queues that Volcano's scheduler makes where they are not there, and whether they are reclaimable."""

log = logging.getLogger(__name__)


class ClusterApi(Actor[ApiRequest, ApiReply]):
    """`api` has what was heard; `permission` is raised when all was seen, and when one may schedule."""

    answers_later = True

    def __init__(
        self,
        name: str,
        mailbox: ApiPort,
        context: Context,
        *,
        api: ApiPort,
        settings: ClusterSettings,
        permission: LevelSignal,
    ) -> None:
        super().__init__(name, mailbox, context)
        self._api = api
        self._settings = settings
        self._permission = permission
        self._client = ClusterClient(settings)
        self._lease_client = ClusterClient(settings, throttled=False)
        self._election = (
            None if settings.election is None else LeaseElection(self._lease_client, settings.election, self.clock)
        )
        self._hearing = hearing = ClusterHearing(name, api, settings)
        self._effects = ClusterEffects(self._client, api, hearing.versions, self.clock, hearing.hear, self._say)
        self._desk = Desk(self._client, self._effects, api, self._may_write, lambda: hearing.revision)
        hearing.decided = self._desk.decided
        self._sayings = Sayings(name)
        self._line, self._forwards = Line(), Line()
        self._open: dict[int, Asked] = {}
        self._forwarded: dict[int, Asked] = {}
        self._reports: dict[Where, Asked] = {}

    # --- its life

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Following the cluster, writing to it, and the Lease."""
        return (self._live_connected,)

    async def on_start(self) -> None:
        """What is here already: what the cluster has otherwise is a change."""
        await self._hearing.begin()

    async def on_stop(self) -> None:
        """What was asked for is done, for a while; then somebody else may schedule."""
        with anyio.move_on_after(PATIENCE_S):
            while self._open:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        if self._election is not None:
            try:
                await self._election.release()
            except (RemoteError, CredentialsError) as error:
                log.warning("the Lease could not be given back: %s", error)

    def at_end(self) -> None:
        """Nobody answers what is left."""
        for item in (*self._open.values(), *self._forwarded.values()):
            item.fail(self.name, "stopped before it was carried out", stopped=self.mailbox.closed)

    async def _live_connected(self) -> None:
        settings = self._settings
        async with self._client, self._lease_client, anyio.create_task_group() as tasks:
            for resource in self._hearing.resources.values():
                tasks.start_soon(
                    Reflector(
                        self._client,
                        resource,
                        self._hearing.intake,
                        poll_s=settings.poll_s,
                        backoff=Backoff(random.random, settings.retry_s),
                        keep=partial(change_of, resource.key),
                    ).run
                )
            for _ in range(settings.writers):
                tasks.start_soon(self._write)
            tasks.start_soon(self._hearing.run)
            tasks.start_soon(self._lead)
            while True:
                tasks.start_soon(await self._forwards.get())

    # --- being the one who schedules

    async def _lead(self) -> None:
        await self._hearing.synced.wait()
        self._permission.raise_to(SEEN)
        election = self._election
        if election is not None:
            log.warning("waiting for the Lease %s", election.said)
            await election.acquire()
            log.warning("holding the Lease: scheduling begins")
        await self._make_queues()
        self._permission.raise_to(SYNCED)
        if election is not None:
            await election.hold()
            log.error("the Lease %s is lost: another scheduler may be at work. %s", election.said, election.problem)
            self._permission.raise_to(LOST)

    def _may_write(self) -> bool:
        return self._election is None or self._election.leads

    async def _make_queues(self) -> None:
        """Create the queues that Volcano creates at its start, where they are not there."""
        for name, reclaimable in QUEUES.items():
            if self._hearing.versions.of((QUEUE, "", name)) is not None:
                continue
            queue: Object = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": QUEUE, "metadata": {"name": name}}
            queue["spec"] = {"reclaimable": reclaimable, "weight": 1}
            try:
                made = await self._client.create(collection(QUEUE, ""), queue, anyio.current_time() + PATIENCE_S)
                await self._hearing.hear(QUEUE, made)
            except (RemoteError, CredentialsError) as error:
                log.warning("queue %s could not be made: %s", name, error)

    # --- writing

    async def handle_batch(self, batch: Sequence[Asked]) -> None:
        """Each waits for its turn."""
        for item in self.each(batch):
            message = item.message
            urgency = URGENCY.get(type(message))
            (self._forwarded if urgency is None else self._open)[id(item)] = item
            if urgency is None:
                self._forwards.put(Urgency.DECISIONS, partial(self._forward, item))
            elif isinstance(message, ReportStatus):
                self._queue_report(message, item)
            else:
                self._line.put(urgency, partial(self._carry_out, item))

    def _queue_report(self, message: ReportStatus, item: Asked) -> None:
        """A later one takes the place of one that waits: who has sent both waits for the later."""
        where = message.kind, message.namespace, message.name
        earlier = self._reports.get(where)
        self._reports[where] = item
        if earlier is None:
            self._line.put(Urgency.STATUSES, partial(self._carry_report, where))
        else:
            self._fail(earlier, "a later report took its place")

    async def _carry_report(self, where: Where) -> None:
        await self._carry_out(self._reports.pop(where))

    def _fail(self, item: Asked, why: str) -> None:
        self._open.pop(id(item), None)
        item.fail(self.name, why)

    async def _write(self) -> None:
        while True:
            await (await self._line.get())()

    async def _forward(self, item: Asked) -> None:
        """What is not for the cluster; it may be held for long."""
        try:
            item.reply(await self._api.ask(item.message))
        except ActorFailedError as error:
            item.fail(self.name, str(error))
        self._forwarded.pop(id(item), None)

    async def _carry_out(self, item: Asked) -> None:
        try:
            reply: ApiReply | None = await self._desk.answer(item.message)
            problem = ""
        except (RemoteError, CredentialsError) as error:
            reply = refused(error) if isinstance(error, RemoteError) else None
            problem = str(error)
        if reply is None:
            self._fail(item, problem)  # nobody knows what became of it
            return
        self._open.pop(id(item), None)
        item.reply(reply)

    def _say(self, about: Object, said: Said) -> None:
        words = said.reason, said.message, self.clock.now()
        request = self._sayings.say(about, *words, source=said.source, warning=said.warning)
        self._line.put(Urgency.EVENTS, partial(self._try_to_say, request))

    async def _try_to_say(self, request: Create | Patch) -> None:
        """What was said before this process began is there; what cannot be said is no loss."""
        try:
            await self._desk.answer(request)
        except (RemoteError, CredentialsError) as error:
            log.info("an event was not said: %s", error)
