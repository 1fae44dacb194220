"""The Starlette application: routes, the door, and the one place where errors become answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from pumice.actors.gateway.discovery import groups, openapi, openapi_v2
from pumice.actors.gateway.discovery.version import version
from pumice.actors.gateway.endpoint import Endpoint, Unslashed
from pumice.actors.gateway.forms import encode
from pumice.actors.gateway.handlers import health, resources
from pumice.actors.gateway.page.handlers import home, page, wants_page
from pumice.actors.gateway.problems import no_such_path
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.negotiation import discovery_version
from pumice.actors.gateway.request.paths import parse_path
from pumice.actors.gateway.request.upgrades import Upgrades
from pumice.actors.gateway.site import Site

Handler = Callable[[Site, Exchange], Awaitable[None]]


def _knowing(handler: Handler) -> Handler:
    """Answers once it is known which kinds are defined and who is asked about requests: right after a restart a kind
    that is not found would be taken for one that has gone.
    """

    async def known(site: Site, exchange: Exchange) -> None:
        if not site.hub.told.is_set():
            await site.hub.told.wait()
        await handler(site, exchange)

    return known


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


@_knowing
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
    if openapi_v2.ASKED in exchange.header("accept"):
        await exchange.answer(200, openapi_v2.as_protobuf(), openapi_v2.PROTOBUF)
        return
    text, tag = openapi_v2.as_json(site.kinds)
    known = exchange.header("if-none-match") == tag
    await exchange.answer(304 if known else 200, b"" if known else text, headers={"etag": tag})


@_knowing
async def _resource(site: Site, exchange: Exchange) -> None:
    target = parse_path(exchange.path)
    if target is None:
        raise no_such_path()
    await resources.serve(site, exchange, target)


async def _root(site: Site, exchange: Exchange) -> None:
    if wants_page(exchange):
        await home(site, exchange)
        return
    site.door.admit(exchange)
    names = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/readyz", "/version"]
    names += ["/openapi/v2", "/openapi/v3"]
    paths = [f"/apis/{name}" for name in groups.groups(site.kinds) if name]
    await _json(exchange, {"paths": sorted([*names, *paths])})


async def _nothing(site: Site, exchange: Exchange) -> None:
    raise no_such_path()


def build_app(site: Site) -> Starlette:
    """All routes. Hot paths first: Starlette tries them one after the other."""

    def route(path: str, handler: Handler, *, reads_only: bool = True, admits: bool = False) -> Route:
        return Route(path, Endpoint(site, handler, reads_only=reads_only, admits=admits))

    checks = [route(f"/{name}{rest}", health.health) for name in health.CHECKS for rest in ("", "/{check}")]
    return Starlette(
        middleware=[Middleware(Upgrades), Middleware(Unslashed)],
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
            route("/", _root, admits=True),
            route("/page/{rest:path}", page, reads_only=False, admits=True),
            route("/{rest:path}", _nothing),
        ],
    )
