# SPDX-License-Identifier: Apache-2.0
"""The gateway: Kubernetes' API over HTTP.

Owns: the connections, the rings of what changed lately, the listings that are read in pages.
Accepts: `Poke`.
Sends: asks the api, the recorder when a client meets a fault, for a reader of metrics the session runner (if there is
one) and the metrics actor, and the cache, for those who look on.
When full: clients wait; a watch that does not read falls behind and gets an error. Bodies and watches are bounded.
Stops: takes no more requests, ends the watches, then what is still being answered, then the connections.

The listening socket is not its own: a crash closes the connections, and the next instance accepts again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

import anyio

from pumice.actors.gateway.discovery import groups, openapi
from pumice.actors.gateway.discovery.groups import version
from pumice.actors.gateway.discovery.openapi import V2_ASKED, V2_PROTOBUF, v2_json, v2_protobuf
from pumice.actors.gateway.faults.door import FaultDoor
from pumice.actors.gateway.forms import encode
from pumice.actors.gateway.front import Application, Endpoint
from pumice.actors.gateway.handlers import health, resources
from pumice.actors.gateway.hub import Hub
from pumice.actors.gateway.identity.rights import Rights
from pumice.actors.gateway.page.handlers import home, page, wants_page
from pumice.actors.gateway.problems import no_such_path
from pumice.actors.gateway.request.exchange import App, Exchange
from pumice.actors.gateway.request.negotiation import discovery_version
from pumice.actors.gateway.server import serve
from pumice.actors.gateway.settings import GatewaySettings
from pumice.actors.gateway.site import Listings, Site
from pumice.actors.gateway.webhooks.controllers import passed
from pumice.actors.runtime.actor import Actor, Context
from pumice.actors.system.ports import ApiPort, CachePort, MetricsPort, PokePort, RecorderPort, RunnerPort
from pumice.cluster.api.kind_table import KindTable
from pumice.cluster.faults.decisions import FaultsInForce
from pumice.cluster.rbac.index import RoleIndex
from pumice.core.messages.commands import Poke
from pumice.core.messages.replies import Done

# --- The application

TELL_S: Final = 1.0
"""Seconds between two looks whether a node was struck."""
Handler = Callable[[Site, Exchange], Awaitable[None]]


def _knowing(handler: Handler) -> Handler:
    """Answer only after the defined kinds and webhooks are known: right after a restart a kind that is not found would
    be taken for a deleted one.
    """

    async def known(site: Site, exchange: Exchange) -> None:
        # Asked first: for nearly all requests it is set, and they are spared a turn of the loop.
        if not site.hub.told.is_set():
            await site.hub.told.wait()
        await handler(site, exchange)

    return known


async def _json(exchange: Exchange, found: object, content_type: str = "application/json") -> None:
    if found is None:
        raise no_such_path()
    await exchange.answer(200, encode(found), content_type)


async def _document(exchange: Exchange, text: bytes | None) -> None:
    if text is None:
        raise no_such_path()
    await exchange.answer(200, text)


async def _version(_site: Site, exchange: Exchange) -> None:
    await _json(exchange, version())


@_knowing
async def _roots(site: Site, exchange: Exchange) -> None:
    """Answer /api and /apis."""
    core = exchange.path.strip("/") == "api"
    asked = discovery_version(exchange.header("accept"))
    # A client that can read aggregated discovery gets all groups in one answer.
    if asked:
        media = f"application/json;g=apidiscovery.k8s.io;v={asked};as=APIGroupDiscoveryList"
        await _json(exchange, groups.aggregated(site.kinds, asked, core=core), media)
    elif core:
        host, port = site.settings.address
        await _json(exchange, groups.api_versions(f"{host}:{port}"))
    else:
        await _json(exchange, groups.group_list(site.kinds))


@_knowing
async def _group(site: Site, exchange: Exchange) -> None:
    await _json(exchange, groups.api_group(site.kinds, exchange.path.strip("/").split("/")[1]))


@_knowing
async def _group_version(site: Site, exchange: Exchange) -> None:
    parts = exchange.path.strip("/").split("/")
    group, number = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
    await _json(exchange, groups.resource_list(site.kinds, group, number))


@_knowing
async def _openapi(site: Site, exchange: Exchange) -> None:
    match exchange.path.strip("/").split("/")[2:]:
        case []:
            await _json(exchange, openapi.index(site.kinds))
        case ["api", number]:
            await _document(exchange, openapi.document(site.kinds, "", number))
        case ["apis", group, number]:
            await _document(exchange, openapi.document(site.kinds, group, number))
        case _:
            raise no_such_path()


@_knowing
async def _openapi_v2(site: Site, exchange: Exchange) -> None:
    if V2_ASKED in exchange.header("accept"):
        await exchange.answer(200, v2_protobuf(), V2_PROTOBUF)
        return
    text, tag = v2_json(site.kinds)
    # The tag changes with the kinds alone, so clients read this large document again only then.
    known = exchange.header("if-none-match") == tag
    await exchange.answer(304 if known else 200, b"" if known else text, headers={"etag": tag})


@_knowing
async def _resource(site: Site, exchange: Exchange) -> None:
    target = exchange.target
    if target is None:
        raise no_such_path()
    await resources.serve(site, exchange, target)


async def _root(site: Site, exchange: Exchange) -> None:
    if wants_page(exchange):
        await home(site, exchange)
        return
    await site.admit(exchange)
    names = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/readyz", "/version"]
    names += ["/openapi/v2", "/openapi/v3"]
    paths = [f"/apis/{name}" for name in groups.groups(site.kinds) if name]
    await _json(exchange, {"paths": sorted([*names, *paths])})


async def _nothing(site: Site, exchange: Exchange) -> None:
    raise no_such_path()


def build_app(site: Site) -> Application:
    """Return all routes, hot paths first."""

    def route(path: str, handler: Handler, *, reads_only: bool = True, admits: bool = False) -> tuple[str, App]:
        return path, Endpoint(site, handler, reads_only=reads_only, admits=admits)

    def behind_the_door(path: str, handler: Handler) -> tuple[str, App]:
        return path, FaultDoor(Endpoint(site, handler), site)

    return Application(
        [
            behind_the_door(r"/api/[^/]+/.*|/apis/[^/]+/[^/]+/.*", _resource),
            route(r"/version", _version),
            route(r"/apis?", _roots),
            route(r"/api/[^/]+|/apis/[^/]+/[^/]+", _group_version),
            route(r"/apis/[^/]+", _group),
            route(r"/openapi/v2", _openapi_v2),
            route(r"/openapi/v3(/.*)?", _openapi),
            route(r"/metrics", health.metrics),
            route(rf"/({'|'.join(health.CHECKS)})(/[^/]+)?", health.health),
            route(r"/", _root, admits=True),
            route(r"/page/.*", page, reads_only=False, admits=True),
            route(r".*", _nothing),
        ]
    )


class Gateway(Actor[Poke, Done]):
    """The gateway. `listings`: those that the api has opened, by handle. `runner`: where cycles run. `stormy`: faults
    are injected, and the api counts them. `faults`: those that clients meet.
    """

    def __init__(
        self,
        name: str,
        mailbox: PokePort,
        context: Context,
        *,
        api: ApiPort,
        metrics: MetricsPort,
        runner: RunnerPort | None,
        cache: CachePort | None,
        recorder: RecorderPort,
        faults: FaultsInForce,
        listings: Listings,
        settings: GatewaySettings,
        stormy: bool,
        installable: bool,
    ) -> None:
        super().__init__(name, mailbox, context)
        limits = {"ring_events": settings.ring_events, "ring_bytes": settings.ring_bytes}
        hub = Hub(api, listings, context, **limits)
        self.site = Site(
            api=api,
            metrics=metrics,
            runner=runner,
            cache=cache,
            recorder=recorder,
            faults=faults,
            listings=listings,
            clock=context.clock,
            hub=hub,
            kinds=KindTable(installable=installable),
            rights=Rights(RoleIndex() if settings.authorization == "rbac" else None),
            settings=settings,
            longest=context.longest,
            stormy=stormy,
        )
        # Before the first request: controllers of this process ask the same webhooks as clients do.
        context.admission_hook.keep(partial(passed, self.site))
        self._stop = anyio.Event()
        self._stopped = anyio.Event()

    async def handle(self, message: Poke) -> Done:
        """Do nothing: the gateway serves every client without commands."""
        return Done()

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Return the hub that reads for the watches, the server, what journals struck nodes, the answerer of questions,
        the count of waiting jobs, and the broadcast to pages.
        """
        site = self.site
        own = (self._pull, self._serve_http, self._tell_of_nodes)
        return (*own, site.desk.keep, site.waiting.keep, site.pages.keep)

    async def on_start(self) -> None:
        """Have the journal say under which faults it goes on."""
        if self.site.faults.is_on:
            await self.site.note(self.site.faults.told())

    async def on_stop(self) -> None:
        """Close the streams first: a server that waits for a watch waits for ever."""
        await self.site.open.end(self.site.settings.grace_s)
        self._stop.set()
        await self._stopped.wait()

    async def _tell_of_nodes(self) -> None:
        """Have the journal say which nodes were struck."""
        while True:
            for struck in self.site.faults.take_untold():
                await self.site.note(struck)
            await anyio.sleep(TELL_S)

    async def _pull(self) -> None:
        await self.site.hub.run(self.name, lambda: [row.key for row in self.site.kinds.rows()], self.site.definition)

    async def _serve_http(self) -> None:
        """Serve HTTP, shielded: hypercorn on asyncio does not survive a cancellation. It is asked to stop instead."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stop_when_cancelled)
            try:
                with anyio.CancelScope(shield=True):
                    await serve(build_app(self.site), self.site.settings, self._stop, self.site.budget, self.site.turns)
            finally:
                self._stopped.set()
            # The server has ended by itself, so nothing is left to be stopped.
            tasks.cancel_scope.cancel()

    async def _stop_when_cancelled(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self.site.open.cut()
            self._stop.set()
