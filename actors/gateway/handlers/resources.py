# SPDX-License-Identifier: Apache-2.0
"""Everything under /api and /apis that is not discovery: the handler of each method and path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from pumice.actors.gateway import advice
from pumice.actors.gateway.handlers import (
    advise,
    faults,
    logs,
    metrics_api,
    placements,
    reads,
    reviews,
    scale,
    tokens,
    watches,
    writes,
)
from pumice.actors.gateway.problems import ApiError, no_such_path, wrong_method
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.paths import Target
from pumice.actors.gateway.site import Site
from pumice.cluster.api.kinds import Kind
from pumice.core.messages.replies import Refused

Handler = Callable[[Site, Exchange, Target, Kind], Awaitable[None]]

_OBJECT: Final[dict[str, Handler]] = {
    "GET": reads.get_object,
    "PUT": writes.replace,
    "PATCH": writes.patch,
    "DELETE": writes.delete,
}
_COLLECTION: Final[dict[str, Handler]] = {
    "GET": reads.get_list,
    "POST": writes.create,
    "DELETE": writes.delete_collection,
}
_STATUS: Final[dict[str, Handler]] = {"GET": reads.get_object, "PUT": writes.replace, "PATCH": writes.patch}
_STREAMS: Final = ("exec", "attach", "portforward", "proxy")
_READS: Final = ("GET", "HEAD")


async def serve(site: Site, exchange: Exchange, target: Target) -> None:
    """Answer a request. Raises ApiError."""
    if target.watched:
        await _watch(site, exchange, target, site.row(target))
        return
    # Before `site.row`: reviews, bindings and advice are not stored, so the table of kinds would answer 404.
    if reviews.kind_of_review(target):
        await reviews.review(site, exchange, target)
        return
    if target.plural == "bindings" and target.api_version == "v1" and exchange.method == "POST":
        await placements.bind(site, exchange, target)
        return
    if target.group == metrics_api.GROUP and exchange.method in _READS:
        await metrics_api.get_usage(site, exchange, target)
        return
    if target.group == advice.GROUP and target.plural in advice.KINDS:
        await advise.advise(site, exchange, target)
        return
    if (target.group, target.version, target.plural) == (advice.GROUP, advice.VERSION, faults.PLURAL):
        await faults.faults(site, exchange, target)
        return
    row = site.row(target)
    if target.subresource:
        await _subresource(site, exchange, target, row)
        return
    # HEAD is GET without a body: the exchange leaves it out.
    method = "GET" if exchange.method in _READS else exchange.method
    if method == "GET" and exchange.query.flag("watch"):
        await watches.watch(site, exchange, target, row)
        return
    handler = (_OBJECT if target.name else _COLLECTION).get(method)
    if handler is None:
        raise wrong_method(exchange.method)
    await handler(site, exchange, target, row)


async def _watch(site: Site, exchange: Exchange, target: Target, row: Kind) -> None:
    if exchange.method != "GET":
        raise wrong_method(exchange.method)
    await watches.watch(site, exchange, target, row)


async def _subresource(site: Site, exchange: Exchange, target: Target, row: Kind) -> None:
    method = "GET" if exchange.method in _READS else exchange.method
    match row.key, target.subresource, method:
        case _, "status", ("GET" | "PUT" | "PATCH") if row.status:
            await _STATUS[method](site, exchange, target, row)
        case _, "scale", _ if row.scale:
            await scale.scale(site, exchange, target, row)
        case "Pod", "binding", "POST":
            await placements.bind(site, exchange, target)
        case "Pod", "eviction", "POST":
            await placements.evict(site, exchange, target)
        case "ServiceAccount", "token", "POST":
            await tokens.create(site, exchange, target)
        case "Namespace", "finalize", "PUT":
            await writes.replace(site, exchange, target, row)
        case ("Pod", "ephemeralcontainers" | "resize", _) | ("CertificateSigningRequest", "approval", _) if (
            method in _STATUS
        ):
            await _STATUS[method](site, exchange, target, row)
        case "Pod", "log", "GET":
            await logs.logs(site, exchange, target)
        case "Pod", sub, _ if sub in _STREAMS:
            raise _simulated(sub)
        case (
            ("Pod", "binding" | "ephemeralcontainers" | "eviction" | "log" | "resize", _)
            | ("Namespace", "finalize", _)
            | (_, "status", _)
        ):
            # A known subresource refuses other methods (405); an unknown one does not exist (404).
            raise wrong_method(method) if row.status else no_such_path()
        case _:
            raise no_such_path()


def _simulated(subresource: str) -> ApiError:
    why = f"containers are simulated: there is nothing to {subresource}"
    return ApiError(Refused(405, "MethodNotAllowed", why))
