"""The Starlette application: routes, the door, and the one place where errors become answers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp

from actors.gateway.discovery import groups, openapi, openapi_v2
from actors.gateway.discovery.version import version
from actors.gateway.forms import encode
from actors.gateway.handlers import health, resources
from actors.gateway.problems import ApiError, internal, no_such_path, unavailable, wrong_method
from actors.gateway.request.exchange import ClientGoneError, Exchange, Receive, Scope, Send
from actors.gateway.request.negotiation import discovery_version
from actors.gateway.request.paths import parse_path
from actors.gateway.security import Doorkeeper
from actors.gateway.site import Site
from actors.gateway.statuses import failure

Handler = Callable[[Site, Exchange], Awaitable[None]]
READS: Final = ("GET", "HEAD")
LEFTOVER: Final = 1024 * 1024
"""Bytes of a refused request's body that are read and dropped rather than to close the connection."""

log = logging.getLogger(__name__)


class Endpoint:
    """One route: lets in, answers, and makes a Status of whatever is refused."""

    def __init__(self, site: Site, door: Doorkeeper, handler: Handler, *, reads_only: bool = False) -> None:
        self._site = site
        self._door = door
        self._handler = handler
        self._reads_only = reads_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        exchange = Exchange(scope, receive, send)
        await self._site.longest.timed(self._serve(exchange), exchange.method, exchange.path)

    async def _serve(self, exchange: Exchange) -> None:
        try:
            with self._site.open.request():
                await self._answer(exchange)
        except ClientGoneError:
            return
        except ApiError as error:
            await refuse(exchange, error)
        except Exception as error:
            log.exception("bug in Pumice: the gateway could not answer %s %s", exchange.method, exchange.path)
            await refuse(exchange, internal(repr(error)))

    async def _answer(self, exchange: Exchange) -> None:
        self._door.admit(exchange)
        if self._site.open.closing:
            raise unavailable("the server is shutting down")
        if self._reads_only and exchange.method not in READS:
            raise wrong_method(exchange.method)
        await self._handler(self._site, exchange)


async def refuse(exchange: Exchange, error: ApiError) -> None:
    """Answer with a Status; a stream that has begun can only be broken off."""
    if exchange.started:
        return  # hypercorn closes the connection of an answer without an end
    refused, headers = error.refused, error.headers
    with anyio.CancelScope(shield=True):
        if not await exchange.pass_over(LEFTOVER):
            headers = {**headers, "connection": "close"}
        await exchange.answer(refused.code, encode(failure(refused)), headers=headers)


async def _json(exchange: Exchange, found: Any, content_type: str = "application/json") -> None:
    if found is None:
        raise no_such_path()
    await exchange.answer(200, encode(found), content_type)


async def _document(exchange: Exchange, text: bytes | None) -> None:
    if text is None:
        raise no_such_path()
    await exchange.answer(200, text)


async def _version(site: Site, exchange: Exchange) -> None:
    del site
    await _json(exchange, version())


async def _roots(site: Site, exchange: Exchange) -> None:
    """/api and /apis."""
    core = exchange.path.strip("/") == "api"
    asked = discovery_version(exchange.header("accept"))
    if asked:
        media = f"application/json;g=apidiscovery.k8s.io;v={asked};as=APIGroupDiscoveryList"
        await _json(exchange, groups.aggregated(site.kinds, asked, core=core), media)
    elif core:
        host, port = site.settings.address
        await _json(exchange, groups.api_versions(f"{host}:{port}"))
    else:
        await _json(exchange, groups.group_list(site.kinds))


async def _group(site: Site, exchange: Exchange) -> None:
    await _json(exchange, groups.api_group(site.kinds, exchange.path.strip("/").split("/")[1]))


async def _group_version(site: Site, exchange: Exchange) -> None:
    parts = exchange.path.strip("/").split("/")
    group, number = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
    await _json(exchange, groups.resource_list(site.kinds, group, number))


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


async def _openapi_v2(site: Site, exchange: Exchange) -> None:
    del site
    if openapi_v2.ASKED in exchange.header("accept"):
        await exchange.answer(200, openapi_v2.as_protobuf(), openapi_v2.PROTOBUF)
    else:
        await _json(exchange, openapi_v2.as_json())


async def _resource(site: Site, exchange: Exchange) -> None:
    target = parse_path(exchange.path)
    if target is None:
        raise no_such_path()
    await resources.serve(site, exchange, target)


async def _root(site: Site, exchange: Exchange) -> None:
    names = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/readyz", "/version"]
    names += ["/openapi/v2", "/openapi/v3"]
    paths = [f"/apis/{name}" for name in groups.groups(site.kinds) if name]
    await _json(exchange, {"paths": sorted([*names, *paths])})


async def _nothing(site: Site, exchange: Exchange) -> None:
    raise no_such_path()


class Unslashed:
    """Takes a slash off the end of the path: `/version/` is `/version`, as some clients write it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        path = scope.get("path", "/")
        if path.endswith("/") and path != "/":
            scope = {**scope, "path": path.rstrip("/") or "/"}
        await self._app(scope, receive, send)


def build_app(site: Site) -> Starlette:
    """All routes. Hot paths first: Starlette tries them one after the other."""
    door = Doorkeeper(site.settings.token, site.settings.address[0])

    def route(path: str, handler: Handler, *, reads_only: bool = True) -> Route:
        return Route(path, Endpoint(site, door, handler, reads_only=reads_only))

    checks = [route(f"/{name}{rest}", health.health) for name in health.CHECKS for rest in ("", "/{check}")]
    return Starlette(
        middleware=[Middleware(Unslashed)],
        routes=[
            route("/api/{version}/{rest:path}", _resource, reads_only=False),
            route("/apis/{group}/{version}/{rest:path}", _resource, reads_only=False),
            route("/version", _version),
            route("/api", _roots),
            route("/apis", _roots),
            route("/api/{version}", _group_version),
            route("/apis/{group}", _group),
            route("/apis/{group}/{version}", _group_version),
            route("/openapi/v2", _openapi_v2),
            route("/openapi/v3", _openapi),
            route("/openapi/v3/{rest:path}", _openapi),
            route("/metrics", health.metrics),
            *checks,
            route("/", _root),
            route("/{rest:path}", _nothing),
        ],
    )
