# SPDX-License-Identifier: Apache-2.0
"""Attributes of a request by which rules of faults select it, named as in Kubernetes' authorization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pumice.actors.gateway.advice import GROUP
from pumice.actors.gateway.identity.rights import attributes_of
from pumice.actors.gateway.identity.users import ADMIN
from pumice.actors.gateway.problems import ApiError
from pumice.actors.gateway.request.bodies import read_object
from pumice.actors.gateway.request.exchange import Exchange, Receive, Scope
from pumice.actors.gateway.site import Site
from pumice.cluster.api.kinds import Kind
from pumice.cluster.faults.decisions import ClientRequest
from pumice.cluster.faults.rules import EVERY
from pumice.cluster.rbac.rules import AccessRequest
from pumice.core.objects.metadata import Object, is_mapping, labels_of, section
from pumice.storage import codec


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
        # A copy: more of the body may be read while the handler reads this.
        left = iter(list(self._read))

        async def receive() -> Any:
            return next(left, None) or await self._receive()

        return receive


async def request_of(site: Site, scope: Scope, read: ReadAgain) -> ClientRequest | None:
    """Return what a request asks for; None for one that no fault strikes: it would be refused anyhow, or is not about
    resources of the cluster.
    """
    exchange = Exchange(scope, read.first, _silent)
    target = exchange.target
    # The gateway's own advice: no kube-apiserver has it, so no client can meet its faults.
    if target is None or target.group == GROUP:
        return None
    try:
        await site.admit(exchange)
        row, access = site.row(target), attributes_of(exchange)
        if access is None or access.verb not in EVERY:
            return None
        obj = await read_object(exchange, site.settings.body_limit) if access.verb == "create" else None
    except ApiError:
        return None
    return _request(site, exchange, access, row, obj)


async def _silent(_message: object) -> None:
    """Send nothing: a request is only looked at."""


def _request(site: Site, exchange: Exchange, access: AccessRequest, row: Kind, obj: Object | None) -> ClientRequest:
    meta = section(obj or {}, "metadata")
    meta = meta if is_mapping(meta) else {}
    # The name of a binding without one in its path stands in its body.
    name = access.name or str(meta.get("name") or "")
    generated = access.verb == "create" and not name
    namespace = access.namespace if row.namespaced else ""
    return ClientRequest(
        client=exchange.agent,
        verb=access.verb,
        kind=row.key,
        namespace=namespace,
        name=str(meta.get("generateName") or "") if generated else name,
        subresource=access.subresource,
        agent=exchange.header("user-agent"),
        user="" if exchange.user is ADMIN else exchange.user.name,
        kinds=(row.key, row.kind, row.qualified),
        resource=row.resource,
        labels=_labels(site, row, namespace, access, None if access.subresource else obj),
        generated=generated,
        at=_revision(exchange) if access.verb == "list" else "",
    )


def _labels(
    site: Site, row: Kind, namespace: str, access: AccessRequest, obj: Object | None
) -> Mapping[str, str] | None:
    """Return the labels of the object that is created, or of the one that exists."""
    if obj is None and access.name and access.verb not in ("list", "watch"):
        known = site.hub.known(row.key, namespace, access.name)
        obj = codec.unpack(known) if known is not None else None
    return None if obj is None else labels_of(obj)


def _revision(exchange: Exchange) -> str:
    query = exchange.query
    if query.text("continue") or query.text("resourceVersionMatch") == "Exact":
        return "exact"
    return "any" if query.text("resourceVersion") == "0" else ""
