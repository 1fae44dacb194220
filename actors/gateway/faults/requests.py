# SPDX-License-Identifier: Apache-2.0
"""What a request asks for, as rules of faults select it: in the words of Kubernetes' authorization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from pumice.actors.gateway.advice import GROUP
from pumice.actors.gateway.identity.users import ADMIN
from pumice.actors.gateway.problems import ApiError
from pumice.actors.gateway.request.bodies import read_object
from pumice.actors.gateway.request.exchange import Exchange, Receive, Scope
from pumice.actors.gateway.request.paths import Target, parse_path
from pumice.actors.gateway.request.selection import named_object
from pumice.actors.gateway.site import Site
from pumice.cluster.api.kinds import Kind
from pumice.cluster.faults.decisions import ClientRequest
from pumice.core.objects.metadata import Object, is_mapping, section, text_map
from pumice.storage import codec

_OF_OBJECT: Final = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_OF_COLLECTION: Final = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}


class ReadAgain:
    """The messages of a request, which are read here once, and by its handler again."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: list[Any] = []

    async def first(self) -> Any:
        """Return the next message, for the first reader."""
        self._read.append(await self._receive())
        return self._read[-1]

    async def whole(self) -> None:
        """Read the rest of the body."""
        while not self._read or self._read[-1].get("more_body"):
            await self.first()

    def again(self) -> Receive:
        """Return a channel that has all messages from the first one on."""
        left = iter(list(self._read))

        async def receive() -> Any:
            return next(left, None) or await self._receive()

        return receive


async def request_of(site: Site, scope: Scope, read: ReadAgain) -> ClientRequest | None:
    """Return what a request asks for; None for one that no fault strikes: it would be refused anyhow, or is not about
    resources of the cluster.
    """
    exchange = Exchange(scope, read.first, _silent)
    target = parse_path(exchange.path)
    if target is None or target.group == GROUP:
        return None
    try:
        await site.admit(exchange)
        row = site.row(target)
        verb = verb_of(exchange, target)
        obj = await read_object(exchange, site.settings.body_limit) if verb == "create" else None
    except ApiError:
        return None
    return _request(site, exchange, target, row, verb, obj) if verb else None


async def _silent(_message: object) -> None:
    """Send nothing: a request is only looked at."""


def verb_of(exchange: Exchange, target: Target) -> str:
    """Return Kubernetes' name of what is asked for; "" for a method that is not served. Raises ApiError."""
    if target.watched or (exchange.method == "GET" and exchange.query.flag("watch")):
        return "watch"
    return (_OF_OBJECT if target.name else _OF_COLLECTION).get(exchange.method, "")


def _request(site: Site, exchange: Exchange, target: Target, row: Kind, verb: str, obj: Object | None) -> ClientRequest:
    meta = section(obj or {}, "metadata")
    meta = meta if is_mapping(meta) else {}
    # The name of a binding without one in its path stands in its body.
    name = target.name or str(meta.get("name") or "")
    generated = verb == "create" and not name
    selected = named_object(exchange.query.text("fieldSelector"))
    return ClientRequest(
        client=exchange.agent,
        verb=verb,
        kind=row.key,
        namespace=target.namespace,
        name=str(meta.get("generateName") or "") if generated else name or selected,
        subresource=target.subresource,
        agent=exchange.header("user-agent"),
        user="" if exchange.user is ADMIN else exchange.user.name,
        kinds=(row.key, row.kind, row.qualified),
        resource=row.resource,
        labels=_labels(site, target, row, None if target.subresource else obj),
        generated=generated,
        at=_revision(exchange) if verb == "list" else "",
    )


def _labels(site: Site, target: Target, row: Kind, obj: Object | None) -> Mapping[str, str] | None:
    """Return the labels of the object that is created, or of the one that exists."""
    if obj is None and target.name:
        known = site.hub.known(row.key, target.namespace, target.name)
        obj = cast("Object", codec.unpack(known)) if known is not None else None
    return None if obj is None else text_map(section(obj, "metadata").get("labels"))


def _revision(exchange: Exchange) -> str:
    query = exchange.query
    if query.text("continue") or query.text("resourceVersionMatch") == "Exact":
        return "exact"
    return "any" if query.text("resourceVersion") == "0" else ""
