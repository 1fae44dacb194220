# SPDX-License-Identifier: Apache-2.0
"""The cluster: it takes the api's place for the effect workers, and carries decisions out on a real cluster.

Owns: the connections to the cluster, the newest version heard of each object, the waiting requests, the Lease.
Accepts: what the api accepts (`pumice.actors.real_clusters.scheduled.cluster_api` says what becomes of it).
Sends: asks the api to reflect what the cluster has, and what is left to it.
When full: no sender waits for room: the effect workers wait for each answer. The most urgent goes first.
Stops: when what it was asked for is done; what gets no answer any more is left to the next start, which looks at the
cluster. Then the Lease is given back.

Scheduling may begin once all of the cluster was listed and the Lease is ours. Losing it ends the process: from the
moment in which another one may have it, nothing is written.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from pumice.actors.errors import ActorFailedError, CredentialsError, RemoteError
from pumice.actors.real_clusters.mirror.changes import change_of
from pumice.actors.real_clusters.mirror.intake import JOB, ORDER, Intake, resources
from pumice.actors.real_clusters.remote.backoff import Backoff
from pumice.actors.real_clusters.remote.reflector import Reflector, named
from pumice.actors.real_clusters.scheduled.client import ClusterClient
from pumice.actors.real_clusters.scheduled.effects import POD, QUEUE, ClusterEffects, collection, place
from pumice.actors.real_clusters.scheduled.election import LeaseElection
from pumice.actors.real_clusters.scheduled.versions import RemoteVersions
from pumice.actors.runtime.actor import Actor
from pumice.actors.runtime.mailbox import ask_again
from pumice.actors.scheduling.cycle_memory import LOST, SEEN, SYNCED
from pumice.cluster.kube.events import Sayings
from pumice.core.messages import commands
from pumice.core.messages.commands import ApiRequest, Create, List, Patch, Reflect, ReportStatus
from pumice.core.messages.message import Message
from pumice.core.messages.replies import Accepted, ApiReply, Listing, Refused
from pumice.core.objects.metadata import Object
from pumice.storage import codec

if TYPE_CHECKING:
    from pumice.actors.real_clusters.mirror.changes import RemoteChange
    from pumice.actors.real_clusters.scheduled.settings import ClusterSettings
    from pumice.actors.runtime.actor import Context
    from pumice.actors.runtime.envelope import Received
    from pumice.actors.runtime.level_signal import LevelSignal
    from pumice.actors.system.ports import ApiPort
    from pumice.cluster.kube.events import Said

    Asked = Received[ApiRequest, ApiReply]

# --- Requests in line, the most urgent first

Work = Callable[[], Coroutine[Any, Any, None]]


class Urgency(IntEnum):
    """Priority of requests: a pod that waits for its node never waits for a report about it."""

    DECISIONS = 0
    STATUSES = 1
    EVENTS = 2


MOST_EVENTS: Final = 20_000
"""Limit of waiting events; further ones are dropped (as with client-go's broadcaster)."""


class Line:
    """Requests in the order of their urgency, then of arrival."""

    def __init__(self) -> None:
        # A deque for each urgency keeps the order of arrival without the counter that a heap would need.
        self._waiting: tuple[deque[Work], ...] = tuple(deque[Work]() for _ in Urgency)
        self._more = anyio.Event()

    def __len__(self) -> int:
        return sum(map(len, self._waiting))

    def put(self, urgency: Urgency, work: Work) -> bool:
        """Add the request, and return whether there was room for it."""
        waiting = self._waiting[urgency]
        # Only events are dropped: no asker waits for one, and nothing else bounds their number.
        if urgency is Urgency.EVENTS and len(waiting) >= MOST_EVENTS:
            return False
        waiting.append(work)
        if not self._more.is_set():
            self._more.set()
        return True

    async def get(self) -> Work:
        """Return the next request."""
        while True:
            for waiting in self._waiting:
                if waiting:
                    return waiting.popleft()
            # Set, and nothing is left: another writer was quicker. All idle writers wait for the same new event.
            if self._more.is_set():
                self._more = anyio.Event()
            await self._more.wait()


# --- The desk: which request goes to the cluster as what
# Binds, evictions, statuses, events and updates go to the cluster, a pod is read there; watching and listing is left
# to the api here, which has all that was heard.

PATIENCE_S: Final = 30.0
"""Seconds of trying to write a request without a deadline."""
IN_STATUS: Final = ("ResourceClaim",)
"""Kinds with a status subresource that holds what a scheduler writes."""
URGENCY: Final[dict[type[Message], Urgency]] = {
    commands.BindPod: Urgency.DECISIONS,
    commands.EvictPod: Urgency.DECISIONS,
    commands.Get: Urgency.DECISIONS,
    commands.Update: Urgency.DECISIONS,
    commands.ReportStatus: Urgency.STATUSES,
    # A scheduler creates and patches nothing but Events (`pumice.cluster.kube.events.Sayings`).
    commands.Create: Urgency.EVENTS,
    commands.Patch: Urgency.EVENTS,
}
"""Of what goes to the cluster; everything else is left to the api here."""
UNAVAILABLE: Final = 503


class Desk:
    """Answers requests. `may_write` tells whether this is still the working scheduler; `heard`: the newest revision
    here.
    """

    def __init__(
        self,
        client: ClusterClient,
        effects: ClusterEffects,
        local: ApiPort,
        may_write: Callable[[], bool],
        heard: Callable[[], int],
    ) -> None:
        self._client = client
        self._effects = effects
        self._local = local
        self._may_write = may_write
        self._heard = heard
        self.decided: dict[str, int] = {}
        """By the uids of pods that are about to be bound, the journal numbers of the decisions."""

    async def answer(self, message: ApiRequest) -> ApiReply:
        """Return the answer to a request. Raises RemoteError, CredentialsError."""
        # Before the look at the Lease: reading does no harm, whoever holds it.
        if isinstance(message, commands.Get):
            return await self._read(message)
        if not self._may_write():
            raise RemoteError("another scheduler may be at work", UNAVAILABLE, "LeaseLost")
        match message:
            case commands.BindPod():
                # Before the request: the watch may show the bound pod before the answer comes.
                self.decided[message.uid] = message.sequence
                try:
                    await self._effects.bind(message)
                except RemoteError:
                    # If another client binds this pod later, that change must not name our decision as its cause.
                    self.decided.pop(message.uid, None)
                    raise
            case commands.EvictPod():
                await self._effects.evict(message)
            case commands.ReportStatus():
                return await self._effects.report(message, _until())
            case commands.Update():
                return await self._update(codec.unpack(message.blob))
            case commands.Create():
                await self._create(codec.unpack(message.blob))
            case commands.Patch():
                where = place(message.kind, message.namespace, message.name)
                await self._client.patch(where, codec.unpack(message.blob), _until())
            case _:
                raise AssertionError(f"{type(message).__name__} is nothing for the cluster")
        return Accepted(self._heard())

    async def _read(self, message: commands.Get) -> ApiReply:
        """Return a pod in its present state, as it is then stored here; other kinds as the cluster has them, to be
        written back.
        """
        obj = await self._effects.read(message.kind, message.namespace, message.name)
        # A scheduler compares pods by the resourceVersion of the api here, which the cluster's answer does not have.
        if message.kind == POD:
            return await self._local.ask(message)
        return Accepted(self._heard(), codec.pack(obj))

    async def _update(self, obj: Object) -> ApiReply:
        meta = obj["metadata"]
        kind, namespace = obj["kind"], meta.get("namespace") or ""
        where = place(kind, namespace, meta["name"], "status" if kind in IN_STATUS else "")
        after = await self._client.replace(where, obj, _until())
        await self._effects.take_in(kind, after)
        return Accepted(self._heard(), codec.pack(after))

    async def _create(self, obj: Object) -> None:
        where = collection(obj["kind"], obj["metadata"].get("namespace") or "")
        await self._client.create(where, obj, _until())


def refused(error: RemoteError) -> Refused | None:
    """Return the answer that an api would give for the error; None when there was no answer."""
    return Refused(error.code, error.reason, str(error)) if error.code else None


def _until() -> float:
    return anyio.current_time() + PATIENCE_S


# --- The hearing: changes of the cluster, handed to the api here in their order

BATCH = 500
"""Limit of changes on their way to the api at the same time: all of a large cluster would need double memory."""


class ClusterHearing:
    """State of the followed cluster. `revision`: of the newest change here that a scheduler sees; `decided`: by uid,
    the decisions to bind a pod.
    """

    def __init__(self, name: str, api: ApiPort, settings: ClusterSettings) -> None:
        self._name = name
        self._api = api
        self._period_s = settings.period_s
        self.resources = {each.key: each for each in resources(settings.config_map)}
        self.intake = Intake(list(self.resources.values()))
        self.versions = RemoteVersions()
        self.decided: dict[str, int] = {}
        self.revision = 0
        self.synced = anyio.Event()
        self._turn = anyio.Lock()

    async def begin(self) -> None:
        """Read the objects that exist here."""
        for kind in ORDER:
            reply = await ask_again(self._api, List(kind))
            for blob in reply.blobs if isinstance(reply, Listing) else ():
                meta = codec.unpack(blob)["metadata"]
                self.versions.know((kind, meta.get("namespace") or "", meta["name"]), meta["uid"])

    async def run(self) -> None:
        """Take in what comes, until it is cancelled."""
        while True:
            await self.intake.wait()
            # Changes that come within a few milliseconds go together: one append to the journal instead of one each.
            await self.intake.is_full(self._period_s)
            await self._take()

    async def hear(self, kind: str, obj: Object) -> int:
        """Take an object from an answer, and return the revision here that contains it."""
        resource = self.resources.get(kind)
        if resource is not None:
            # Through the same intake as the watch: `versions` drops whichever of the two comes second.
            await self.intake.changed(resource, "MODIFIED", named(resource, obj))
            await self._take()
        return self.revision

    async def _take(self) -> None:
        async with self._turn:
            # Asked before the changes are stored: a list that is completed meanwhile is not among them.
            whole = self.intake.whole
            changes = self.versions.news(self.intake.take(self.versions.names))
            for start in range(0, len(changes), BATCH):
                await self._store(changes[start : start + BATCH])
            if whole:
                self.synced.set()

    async def _store(self, changes: Sequence[RemoteChange]) -> None:
        replies = await self._api.ask_many([self._reflected(change) for change in changes])
        for change, reply in zip(changes, replies, strict=True):
            if not isinstance(reply, Accepted):
                log.error("%s %s/%s could not be kept: %s", *change.key, reply)
            # A scheduler's view watches no Jobs: who waits for it to reach the revision of one might wait for long.
            elif change.kind != JOB:
                self.revision = max(self.revision, reply.revision)

    def _reflected(self, change: RemoteChange) -> Reflect:
        """Return the reflected change; a bind that comes true names its decision."""
        if change.gone or change.blob is None:
            return Reflect(*change.key, b"")
        decided = 0
        # `decided` is asked before `obj`: while no bind is under way, no pod is unpacked here.
        if change.kind == POD and self.decided and (obj := change.obj) and obj["spec"].get("nodeName"):
            decided = self.decided.pop(obj["metadata"]["uid"], 0)
        return Reflect(*change.key, change.blob, self._name if decided else "", decided)


Where = tuple[str, str, str]

QUEUES: Final = {"default": True, "root": False}
"""Queues that Volcano's scheduler creates when they do not exist, and whether they are reclaimable."""

log = logging.getLogger(__name__)


class ClusterApi(Actor[ApiRequest, ApiReply]):
    """Stands for the api where decisions are carried out on a real cluster: the effect workers send it the same
    messages.

    `api` holds the followed state; `permission` is raised when all was seen, and when this process may schedule.
    """

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
        # A renewal that waits behind binds for a token of the limit could lose the Lease.
        self._lease_client = ClusterClient(settings, throttled=False)
        self._election = (
            None if settings.election is None else LeaseElection(self._lease_client, settings.election, self.clock)
        )
        self._hearing = hearing = ClusterHearing(name, api, settings)
        self._effects = ClusterEffects(self._client, api, hearing.versions, self.clock, hearing.hear, self._say)
        self._desk = Desk(self._client, self._effects, api, self._may_write, lambda: hearing.revision)
        # One table: the desk enters a bind, and the hearing takes it out once the cluster shows it.
        hearing.decided = self._desk.decided
        self._sayings = Sayings(name)
        self._line, self._forwards = Line(), Line()
        self._open: dict[int, Asked] = {}
        self._forwarded: dict[int, Asked] = {}
        self._reports: dict[Where, Asked] = {}

    # --- its life

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Follow the cluster, write to it, and hold the Lease."""
        return (self._live_connected,)

    async def on_start(self) -> None:
        """Take the present objects as known: any difference in the cluster is a change."""
        await self._hearing.begin()

    async def on_stop(self) -> None:
        """Wait for the open requests, for a limited time; then give the Lease back: another scheduler may take over."""
        with anyio.move_on_after(PATIENCE_S):
            while self._open:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        if self._election is not None:
            try:
                await self._election.release()
            except (RemoteError, CredentialsError) as error:
                log.warning("the Lease could not be given back: %s", error)

    def at_end(self) -> None:
        """Fail the remaining requests, which will get no other answer."""
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
                # A task for each: a watcher's pull is held until there is news, and must not hold up the others.
                tasks.start_soon(await self._forwards.get())

    # --- being the working scheduler

    async def _lead(self) -> None:
        await self._hearing.synced.wait()
        # Before the Lease: a standby that ends while it waits for it has seen the cluster all the same
        # (`System.has_seen`).
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
        """Create the queues that Volcano creates at its start, when they do not exist."""
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
        """Queue each request for its turn."""
        for item in self.each(batch):
            message = item.message
            urgency = URGENCY.get(type(message))
            # By identity: two equal requests have two askers.
            (self._forwarded if urgency is None else self._open)[id(item)] = item
            if urgency is None:
                # All with one urgency: what is forwarded keeps its order.
                self._forwards.put(Urgency.DECISIONS, partial(self._forward, item))
            elif isinstance(message, ReportStatus):
                self._queue_report(message, item)
            else:
                self._line.put(urgency, partial(self._carry_out, item))

    def _queue_report(self, message: ReportStatus, item: Asked) -> None:
        """Replace a waiting report by a later one: the sender of both waits for the later."""
        where = message.kind, message.namespace, message.name
        earlier = self._reports.get(where)
        self._reports[where] = item
        if earlier is None:
            # The line holds the object and not the report: a later report gets the turn of the earlier one.
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
        """Forward a request that is not for the cluster; the receiver may hold it for long."""
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
            self._fail(item, problem)  # its result is unknown
            return
        self._open.pop(id(item), None)
        item.reply(reply)

    def _say(self, about: Object, said: Said) -> None:
        words = said.reason, said.message, self.clock.now()
        request = self._sayings.say(about, *words, source=said.source, warning=said.warning)
        self._line.put(Urgency.EVENTS, partial(self._try_to_say, request))

    async def _try_to_say(self, request: Create | Patch) -> None:
        """Write an event, if possible; a lost event does no harm."""
        try:
            await self._desk.answer(request)
        except (RemoteError, CredentialsError) as error:
            log.info("an event was not said: %s", error)
