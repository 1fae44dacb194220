# SPDX-License-Identifier: Apache-2.0
"""Requests of this process's controllers to the api, sent through the webhooks as if they came over HTTP.

Statuses are not shown: the agents and controllers that write them do so all the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import anyio

from pumice.actors.gateway.identity.users import ADMIN
from pumice.actors.gateway.problems import ApiError
from pumice.actors.gateway.request.paths import Target
from pumice.actors.gateway.site import Site
from pumice.actors.gateway.webhooks import passage
from pumice.cluster.api.kinds import Kind
from pumice.core.messages.commands import ApiRequest, Create, Delete, Patch, Update
from pumice.core.objects.metadata import Object, section
from pumice.storage import codec

if TYPE_CHECKING:
    from pumice.actors.runtime.actor import Passed

MOST_CONCURRENT: Final = 16
"""Number of requests of one controller that webhooks handle at a time."""


async def passed(site: Site, requests: Sequence[ApiRequest]) -> list[Passed]:
    """Return for each request its result after the webhooks, in order."""
    found: list[Passed] = [*requests]
    if not site.hooks:
        return found
    limiter = anyio.CapacityLimiter(MOST_CONCURRENT)

    async def one(place: int, request: ApiRequest) -> None:
        async with limiter:
            # By place: webhooks may answer in another order.
            found[place] = await _passed(site, request)

    async with anyio.create_task_group() as tasks:
        for place, request in enumerate(requests):
            if isinstance(request, Create | Update | Patch | Delete):
                tasks.start_soon(one, place, request)
    return found


async def _passed(site: Site, request: ApiRequest) -> Passed:
    try:
        match request:
            case Create():
                row, target = _of_object(site, codec.unpack(request.blob))
                return request if row is None else (await passage.creation(site, ADMIN, target, row, request))[0]
            case Update():
                row, target = _of_object(site, codec.unpack(request.blob), request.subresource)
                return request if row is None else (await passage.change(site, ADMIN, target, row, request))[0]
            case Patch():
                row, target = _of_name(site, request, request.subresource)
                return request if row is None else (await passage.change(site, ADMIN, target, row, request))[0]
            case Delete():
                row, target = _of_name(site, request)
                if row is not None:
                    await passage.removal(site, ADMIN, target, row, request)
                return request
            case _:
                return request
    except ApiError as error:
        return error.refused


def _of_object(site: Site, obj: Object, subresource: str = "") -> tuple[Kind | None, Target]:
    row, meta = site.kinds.by_type(obj.get("apiVersion"), obj.get("kind")), section(obj, "metadata")
    return row, _target(row, meta.get("namespace") or "", meta.get("name") or "", subresource)


def _of_name(site: Site, request: Patch | Delete, subresource: str = "") -> tuple[Kind | None, Target]:
    row = site.kinds.by_key(request.kind)
    return row, _target(row, request.namespace, request.name, subresource)


def _target(row: Kind | None, namespace: str, name: str, subresource: str) -> Target:
    if row is None:
        return Target()
    return Target(row.group, row.version, namespace if row.namespaced else "", row.plural, name, subresource)
