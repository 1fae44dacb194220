# SPDX-License-Identifier: Apache-2.0
"""Services that every handler of the gateway works with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final, TypeVar

import anyio
import msgspec
from anyio import lowlevel
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from pumice.actors.errors import ActorFailedError, ActorStoppedError
from pumice.actors.gateway.advice import AdviceDesk, AdviserQuestion
from pumice.actors.gateway.front import Front
from pumice.actors.gateway.hub import Hub
from pumice.actors.gateway.identity import account_tokens
from pumice.actors.gateway.identity.authenticator import Authenticator, is_probe
from pumice.actors.gateway.identity.impersonation import impersonated
from pumice.actors.gateway.identity.rights import PODS, Rights, attributes_of, refusal
from pumice.actors.gateway.listings import KeptListings
from pumice.actors.gateway.page.broadcast import Broadcast
from pumice.actors.gateway.problems import RETRY_S, ApiError, failed, internal, no_such_path, too_many, unavailable
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.paths import Target
from pumice.actors.gateway.request.selection import Selection
from pumice.actors.gateway.webhooks.hooks import CONFIGURATIONS, HookTable
from pumice.actors.runtime.clock import Clock
from pumice.actors.system.ports import ApiPort, CachePort, MetricsPort, RecorderPort, RunnerPort
from pumice.cluster.api.kind_table import KindTable
from pumice.cluster.api.kinds import Kind
from pumice.cluster.faults.decisions import FaultsInForce
from pumice.cluster.handles import HandleTable
from pumice.cluster.rbac.rules import KINDS as ROLES
from pumice.cluster.rbac.rules import User
from pumice.core.messages import commands, replies
from pumice.core.messages.events import FaultEvent
from pumice.core.objects.metadata import Object
from pumice.storage import codec
from pumice.storage.journal import FAULT

# --- Metrics of jobs that wait
# The adviser counts them while a client reads metrics, so seldom that it costs little.

LEAST_S: Final = 15.0
"""Between two counts."""
REST: Final = 20
"""And so many times as long as the last one took."""
OK: Final = 200


class WaitingGauges:
    """Counts waiting jobs. `text` is the last count, and starts the next."""

    def __init__(self, desk: AdviceDesk) -> None:
        self._desk = desk
        self._text = b""
        self._read = anyio.Event()

    def text(self) -> bytes:
        """Return the gauges in Prometheus' format; empty before the first count has ended."""
        self._read.set()
        return self._text

    async def keep(self) -> None:
        """Count after each read of the metrics, until cancelled."""
        while True:
            await self._read.wait()
            # Before the count: a read meanwhile asks for the next one.
            self._read = anyio.Event()
            began = anyio.current_time()
            try:
                answer = await self._desk.look(AdviserQuestion("waitclasses"))
            except ApiError:
                # The old count stays, and the next read tries again.
                continue
            if answer.code == OK:
                self._text = exposed(msgspec.json.decode(answer.body))
            await anyio.sleep(max(LEAST_S, REST * (anyio.current_time() - began)))


def exposed(counted: Object) -> bytes:
    """Return the answer about classes as metrics."""
    registry = CollectorRegistry()
    labels = ("queue", "class", "reason")
    jobs = Gauge("pumice_waiting_jobs", "Jobs that wait, by queue, class and reason", labels, registry=registry)
    cycle = Gauge("pumice_waiting_counted_cycle", "The cycle after which waiting jobs were counted", registry=registry)
    cycle.set(counted["cycle"])
    for each in counted["counts"]:
        jobs.labels(*(each[label] for label in labels)).set(each["jobs"])
    return generate_latest(registry)


NOT_FOUND: Final = 404
SLICE: Final = 100

A = TypeVar("A")
Listings = HandleTable[tuple[bytes, ...]]


@dataclass(kw_only=True)
class Site(Front):
    """Services of the gateway. `listings`: those that the api has opened, by handle; `kinds` and `hooks` follow the
    hub; `cache` is None where no scheduler runs; `stormy`: faults are injected. `faults`: those that clients meet.
    """

    api: ApiPort
    metrics: MetricsPort
    runner: RunnerPort | None
    recorder: RecorderPort
    listings: Listings
    clock: Clock
    hub: Hub
    kinds: KindTable
    rights: Rights = field(default_factory=partial(Rights, None))
    cache: CachePort | None = None
    stormy: bool = False
    faults: FaultsInForce = field(default_factory=FaultsInForce)
    hooks: HookTable = field(default_factory=HookTable)
    kept: KeptListings = field(default_factory=KeptListings)
    watches: int = 0
    tokens_made: int = 0

    @cached_property
    def authenticator(self) -> Authenticator:
        """Return the authenticator, which knows the tokens of ServiceAccounts too."""
        return Authenticator(self.settings, self._account_of)

    async def _account_of(self, token: str) -> User | None:
        """Return the ServiceAccount of a token that is for this API, None for another token."""
        # Before any signature is verified: most tokens are of another sort.
        if not account_tokens.looks_signed(token):
            return None
        try:
            found = await account_tokens.owner(self.settings.account_key, token, self.clock.now(), self.remembered)
        except account_tokens.InvalidTokenError:
            return None
        return found.user if account_tokens.AUDIENCE in found.audiences else None

    async def remembered(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object as the hub knows it, which costs no question; a new one from the api."""
        blob = self.hub.known(kind, namespace, name)
        return await self.find(kind, namespace, name) if blob is None else codec.unpack(blob)

    async def authenticate(self, exchange: Exchange) -> None:
        """Find out who sends a request, and in whose name. Raises ApiError (400, 401, 403)."""
        await super().authenticate(exchange)
        if self.rights.index is not None and not self.hub.told.is_set():
            await self.hub.told.wait()  # the roles are not known before
        exchange.user = impersonated(self.rights, exchange)

    async def admit(self, exchange: Exchange) -> None:
        """Check that the sender may do what it asks for. Raises ApiError (400, 401, 403)."""
        if is_probe(exchange.path):  # which must be answered before any role is known
            await super().authenticate(exchange)
            return
        await self.authenticate(exchange)
        if self.rights.index is not None and (asked := attributes_of(exchange)) is not None:
            self.rights.demand(exchange.user, asked)

    @cached_property
    def pages(self) -> Broadcast:
        """Return the broadcast for open pages."""
        return Broadcast(self.cache, self.metrics, self.runner)

    @cached_property
    def waiting(self) -> WaitingGauges:
        """Return the gauges of waiting jobs by reason."""
        return WaitingGauges(self.desk)

    def namespaces_seen(self, user: User, *, whole: bool = False) -> tuple[str, ...] | None:
        """Return the namespaces whose pods a user may list, None for all. `whole`: only all will do. Raises ApiError
        (403).
        """
        found = self.rights.namespaces(user, PODS)
        if found is not None and (whole or not found):
            raise refusal(user, PODS)
        return None if found is None else tuple(sorted(found))

    def row(self, target: Target) -> Kind:
        """Return the kind behind a path. Raises ApiError (404)."""
        row = self.kinds.by_resource(target.group, target.version, target.plural)
        if row is None or (target.namespace and not row.namespaced):
            raise no_such_path()
        if target.name and row.namespaced and not target.namespace:
            raise no_such_path()
        return row

    async def ask(self, request: commands.ApiRequest) -> replies.Accepted:
        """Ask the api. Raises ApiError with its refusal, or 500 when it crashed over the request."""
        reply = await guarded(self.api.ask(request))
        if isinstance(reply, replies.Accepted):
            return reply
        raise refused(reply)

    async def ask_if_there(self, request: commands.ApiRequest) -> None:
        """Ask like `ask`, where the object may have gone meanwhile."""
        try:
            await self.ask(request)
        except ApiError as error:
            if error.refused.code != NOT_FOUND:
                raise

    async def chosen(self, selected: Selection, blobs: tuple[bytes, ...]) -> AsyncIterator[Object]:
        """Yield the selected ones of a listing, with a breath now and then."""
        for number, blob in enumerate(blobs):
            obj: Object = codec.unpack(blob)
            if selected.takes(obj):
                yield obj
            if number % SLICE == SLICE - 1:
                await lowlevel.checkpoint()

    async def get(self, kind: str, namespace: str, name: str) -> Object:
        """Return the object. Raises ApiError (404)."""
        answer = await self.ask(commands.Get(kind, namespace, name))
        found: Object = codec.unpack(answer.blob)
        return found

    async def find(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return the object, if it exists."""
        reply = await self.api.ask(commands.Get(kind, namespace, name))
        return codec.unpack(reply.blob) if isinstance(reply, replies.Accepted) else None

    async def listing(self, kind: str, namespace: str | None) -> tuple[int, tuple[bytes, ...]]:
        """Return the revision of a listing and its objects. Raises ApiError."""
        while True:
            reply = await guarded(self.api.ask(commands.OpenListing(kind, namespace)))
            if not isinstance(reply, replies.ListingOpened):
                raise refused(reply)
            if reply.handle in self.listings:
                return reply.revision, self.listings.take(reply.handle)
            # Hundreds asked together, and the api holds the newest ones only: this one asks again.
            await self.turns.take()

    async def note(self, event: FaultEvent) -> None:
        """Have what is said of faults in the journal; a system that stops takes no more."""
        with suppress(ActorStoppedError):
            await self.recorder.ask(commands.Append((commands.Entry(FAULT, codec.encode(event)),)))

    @contextmanager
    def watching(self) -> Generator[None]:
        """Count one more watch. Raises ApiError (429) at the limit."""
        limit = self.settings.watch_limit
        if self.watches >= limit:
            raise too_many(f"too many watches: at most {limit} at a time")
        # No `await` between the check and this, so no other watch can come between.
        self.watches += 1
        try:
            yield
        finally:
            self.watches -= 1

    def definition(self, change: str, kind: str, definition: Object) -> Kind | None:
        """Note that a CustomResourceDefinition, a role, or a configuration of webhooks or policies, has come, changed
        or gone, and return the kind that it defines.
        """
        if kind in CONFIGURATIONS:
            self.hooks.heard(change, kind, definition)
            return None
        if kind in ROLES:
            if self.rights.index is not None:
                self.rights.index.heard(change, kind, definition)
            return None
        if change == "DELETED":
            self.kinds.withhold(definition["metadata"]["name"])
            return self.kinds.remove_definition(definition["metadata"]["name"])
        return self.kinds.add_definition(definition)


async def guarded(asking: Awaitable[A]) -> A:
    """Return the answer of an actor. Raises ApiError when it stops or crashes instead."""
    try:
        return await asking
    except ActorStoppedError:
        raise unavailable("the server is shutting down") from None
    except ActorFailedError as error:
        if error.world:
            raise failed(error.error) from error
        raise internal(f"the api crashed over this request and comes back: {error.error}") from error


def refused(reply: object) -> ApiError:
    """Return the api's refusal as an error; clients wait as long as it says before they try again."""
    if not isinstance(reply, replies.Refused):
        return internal(f"an answer of type {type(reply).__name__}")
    retry = reply.details.get("retryAfterSeconds")
    if retry or (reply.code == 429 and not _blocked(reply)):
        return ApiError(reply, {"retry-after": str(retry or RETRY_S)})
    return ApiError(reply)


def _blocked(reply: replies.Refused) -> bool:
    """Return the error for an eviction that a budget forbids: the client decides when to try again, as kubectl drain
    does.
    """
    return any(cause.get("reason") == "DisruptionBudget" for cause in reply.details.get("causes", ()))
