# SPDX-License-Identifier: Apache-2.0
"""/apis/pumice.dev/v1/faults: the profile of faults in force, read and replaced."""

from __future__ import annotations

from typing import Final

from pumice.actors.gateway.forms import encode
from pumice.actors.gateway.problems import bad_request, no_such_path, wrong_method
from pumice.actors.gateway.request.bodies import read_value
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.paths import Target
from pumice.actors.gateway.site import Site
from pumice.cluster.faults.decisions import FaultsInForce
from pumice.cluster.faults.profiles import read_profile
from pumice.cluster.faults.rules import FaultProfile
from pumice.cluster.kube.statuses import timestamp
from pumice.config.errors import ConfigError
from pumice.config.read import ValuePlace
from pumice.config.yaml_tree import Document

PLURAL: Final = "faults"
KIND: Final = "FaultProfile"


async def faults(site: Site, exchange: Exchange, target: Target) -> None:
    """Answer with the profile in force, after it was replaced (POST) or taken away (DELETE). Raises ApiError."""
    if target.name or target.namespace:
        raise no_such_path()
    match exchange.method:
        case "GET" | "HEAD":
            pass
        case "POST":
            await _begin(site, await _given(site, exchange))
        case "DELETE":
            await _begin(site, FaultProfile())
        case method:
            raise wrong_method(method)
    await exchange.answer(200, encode(_told(site.faults)))


async def _given(site: Site, exchange: Exchange) -> FaultProfile:
    value = await read_value(exchange, site.settings.body_limit)
    try:
        return read_profile(ValuePlace(Document("", value)), value)
    except ConfigError as error:
        raise bad_request(str(error)) from error


async def _begin(site: Site, profile: FaultProfile) -> None:
    site.faults.begin(profile, site.clock.now())
    await site.note(site.faults.told())


def _told(faults: FaultsInForce) -> dict[str, object]:
    return {
        "kind": KIND,
        "apiVersion": "pumice.dev/v1",
        "metadata": {"creationTimestamp": timestamp(faults.began)},
        "seed": faults.seed,
        "rules": faults.profile.rules,
        "struck": dict(faults.struck),
    }
