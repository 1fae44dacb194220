# SPDX-License-Identifier: Apache-2.0
"""POST of a pod's binding and of its eviction."""

from __future__ import annotations

from typing import Any

from pumice.actors.gateway.forms import answer_status
from pumice.actors.gateway.handlers.writes import delete_fields
from pumice.actors.gateway.problems import bad_request, success
from pumice.actors.gateway.request.bodies import read_object
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.paths import Target
from pumice.actors.gateway.request.query import dry_run, write_options
from pumice.actors.gateway.site import Site
from pumice.core.messages import commands
from pumice.core.objects.metadata import Object, section


async def bind(site: Site, exchange: Exchange, target: Target) -> None:
    """Answer POST pods/NAME/binding, or bindings with the name in the body: 201 with a Status."""
    binding = await read_object(exchange, site.settings.body_limit)
    meta, node = _part(binding, "metadata"), _part(binding, "target")
    name = _text(meta, "metadata", "name") or target.name
    if target.name and name != target.name:
        raise bad_request(f"name in URL ({target.name}) does not match name in Binding object ({name})")
    if _text(node, "target", "kind") not in ("", "Node", "Minion"):
        raise bad_request(f"target.kind: Unsupported value: {node['kind']!r}: supported values: Node")
    if not _text(node, "target", "name"):
        raise bad_request("target.name: Required value")
    annotations = _part(meta, "annotations")
    if not all(isinstance(value, str) for value in annotations.values()):
        raise bad_request("metadata.annotations: expected texts")
    if write_options(exchange.query).dry_run:
        await site.get("Pod", target.namespace, name)
    else:
        uid = _text(meta, "metadata", "uid")
        message = commands.BindPod(target.namespace, name, uid, node["name"], annotations=dict(annotations))
        await site.ask(message)
    await answer_status(exchange, 201, success(code=201))


async def evict(site: Site, exchange: Exchange, target: Target) -> None:
    """Answer POST pods/NAME/eviction: 201, or 429 while a PodDisruptionBudget forbids it."""
    eviction = await read_object(exchange, site.settings.body_limit)
    if eviction.get("kind", "Eviction") != "Eviction":
        raise bad_request(f"expected an Eviction in the body, found {eviction['kind']!r}")
    name = _text(_part(eviction, "metadata"), "metadata", "name") or target.name
    if name != target.name:
        raise bad_request(f"name in URL ({target.name}) does not match name in Eviction object ({name})")
    options = delete_fields(_part(eviction, "deleteOptions"), [])
    dry = options["dry_run"] or dry_run(exchange.query.all("dryRun"))
    message = commands.RequestEviction(
        target.namespace, name, options["uid"], options["grace_period_s"], exchange.agent, dry
    )
    await site.ask(message)
    await answer_status(exchange, 201, success(code=201))


def _part(obj: Object, name: str) -> Object:
    found = section(obj, name)
    if not isinstance(found, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise bad_request(f"{name}: expected an object")
    return found


def _text(obj: Object, where: str, name: str) -> str:
    value: Any = obj.get(name)
    if value is not None and not isinstance(value, str):
        raise bad_request(f"{where}.{name}: expected a text")
    return value or ""
