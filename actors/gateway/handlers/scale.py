# SPDX-License-Identifier: Apache-2.0
"""The scale subresource: autoscaling/v1 Scale over an object's replicas."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pumice.actors.gateway.columns.printers import printer_of
from pumice.actors.gateway.forms import Writer, answer_object, form_of
from pumice.actors.gateway.handlers.writes import who
from pumice.actors.gateway.problems import PATCH_TYPES, bad_request, invalid, unsupported_media, wrong_method
from pumice.actors.gateway.request.bodies import media_type, packed, read_object, read_value
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.paths import Target
from pumice.actors.gateway.request.query import write_options
from pumice.actors.gateway.site import Site
from pumice.cluster.api.kind_table import KindTable
from pumice.cluster.api.kinds import Kind
from pumice.cluster.kube.merge_patch import merge_patch
from pumice.core.messages import commands
from pumice.core.objects.metadata import Object, is_mapping, mapping, section
from pumice.storage import codec

API_VERSION: Final = "autoscaling/v1"
MERGES: Final = ("application/merge-patch+json", "application/strategic-merge-patch+json")
# replicas is an int32.
_MOST: Final = 2**31 - 1
_SCALE: Final = Kind("Scale", "Scale", "autoscaling", "v1", "scales")


class Paths(NamedTuple):
    """Paths of an object's replica numbers, as steps."""

    wanted: tuple[str, ...] = ("spec", "replicas")
    there: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ("spec", "selector")


def paths_of(kinds: KindTable, row: Kind, api_version: str) -> Paths:
    """Return the usual ones, or those that the kind's definition names."""
    definition = kinds.definition(row.key)
    if definition is None:
        return Paths()
    version = api_version.rpartition("/")[2]
    listed: list[Object] = section(definition, "spec").get("versions") or []
    found: Object = next((each for each in listed if each.get("name") == version), Object())
    scale = section(section(found, "subresources"), "scale")
    given = (scale.get(f"{name}Path") for name in ("specReplicas", "statusReplicas", "labelSelector"))
    return Paths(*(tuple(str(path or "").strip(".").split(".")) for path in given))


def scale_of(obj: Object, paths: Paths) -> Object:
    """Return an object's Scale."""
    meta = section(obj, "metadata")
    # The Scale has the object's own uid and revision, so that an update of one conflicts with the other.
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Object = {"replicas": _dig(obj, paths.there) or 0}
    selector = _dig(obj, paths.selector)
    if selector:
        status["selector"] = selector if isinstance(selector, str) else _selector_text(selector)
    wanted = _dig(obj, paths.wanted)
    # A kind without a number has one replica, as Kubernetes fills in for its own.
    return {
        "kind": "Scale",
        "apiVersion": API_VERSION,
        "metadata": {name: meta[name] for name in names if name in meta},
        "spec": {"replicas": 1 if wanted is None else wanted},
        "status": status,
    }


async def scale(site: Site, exchange: Exchange, target: Target, row: Kind) -> None:
    """Answer GET, PUT and PATCH of /scale."""
    paths = paths_of(site.kinds, row, target.api_version)
    obj = await site.get(row.key, target.namespace, target.name)
    match exchange.method:
        case "GET":
            await _show(site, exchange, scale_of(obj, paths))
        case "PUT":
            given = await read_object(exchange, site.settings.body_limit)
            await _write(site, exchange, target, row, paths, given)
        case "PATCH":
            patch = await _patch(site, exchange)
            await _write(site, exchange, target, row, paths, merge_patch(_patchable(obj, paths), patch))
        case _:
            raise wrong_method(exchange.method)


def _patchable(obj: Object, paths: Paths) -> Object:
    """Return the Scale without its version: a patch that names none goes onto whatever is there."""
    found = scale_of(obj, paths)
    del found["metadata"]["resourceVersion"]
    return found


async def _patch(site: Site, exchange: Exchange) -> Object:
    media = media_type(exchange)
    if media not in MERGES:
        raise unsupported_media(media, PATCH_TYPES)
    patch = await read_value(exchange, site.settings.body_limit, PATCH_TYPES)
    if not is_mapping(patch):
        raise bad_request("a patch is an object")
    return patch


async def _write(site: Site, exchange: Exchange, target: Target, row: Kind, paths: Paths, given: Any) -> None:
    """Set the number of replicas that a Scale asks for."""
    options = write_options(exchange.query)
    replicas = _replicas(given, target.name)
    body: Any = replicas
    # From the inside out, since a definition may put the number anywhere.
    for step in reversed(paths.wanted):
        body = {step: body}
    meta = section(given, "metadata")
    # Those of a Scale are the object's own: the patch must fail once the object has changed.
    kept = {name: meta[name] for name in ("resourceVersion", "uid") if isinstance(meta.get(name), str)}
    if kept:
        body["metadata"] = kept
    message = commands.Patch(row.key, target.namespace, target.name, packed(body), **who(exchange, options))
    answer = await site.ask(message)
    await _show(site, exchange, scale_of(codec.unpack(answer.blob), paths))


def _replicas(given: object, name: str) -> int:
    if not is_mapping(given) or not is_mapping(spec := section(given, "spec")):
        raise bad_request("expected a Scale")
    replicas = spec.get("replicas", 0)
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise bad_request("spec.replicas: expected a number")
    if not 0 <= replicas <= _MOST:
        why = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid("Scale", name, [("FieldValueInvalid", "spec.replicas", why)], "autoscaling")
    return replicas


async def _show(site: Site, exchange: Exchange, found: Object) -> None:
    form = form_of(exchange, API_VERSION, _SCALE.kind)
    printer = printer_of("Scale") if form.shape == "Table" else None
    write = Writer(_SCALE, API_VERSION, form, printer, "Metadata")
    await answer_object(exchange, 200, write.one(found, site.clock.now()), form)


def _dig(obj: Object, steps: tuple[str, ...]) -> Any:
    value: Any = obj
    for step in steps:
        value = mapping(value).get(step)
    return value


def _selector_text(selector: object) -> str:
    """Return a structured selector (or the plain map of a ReplicationController) in its text form."""
    given = mapping(selector)
    structured = "matchLabels" in given or "matchExpressions" in given
    labels: Object = section(given, "matchLabels") if structured else given
    parts = [f"{key}={value}" for key, value in sorted(labels.items())]
    for rule in given.get("matchExpressions") or ():
        values = ",".join(sorted(map(str, rule.get("values") or ())))
        words = {"In": f"{rule.get('key')} in ({values})", "NotIn": f"{rule.get('key')} notin ({values})"}
        words |= {"Exists": str(rule.get("key")), "DoesNotExist": f"!{rule.get('key')}"}
        parts.append(words.get(str(rule.get("operator")), ""))
    return ",".join(part for part in parts if part)
