# SPDX-License-Identifier: Apache-2.0
"""metrics.k8s.io/v1beta1, the source of `kubectl top`: the usage of nodes and pods.

A node's figures are its NodeMetrics object when it has one. Else they are simulated, as pods' always are: a running
container uses what it requests, a node what its running pods use.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final

from anyio import lowlevel

from pumice.actors.gateway.forms import Writer, answer_object, form_of, writer
from pumice.actors.gateway.problems import no_such_path, not_found, wrong_method
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.paths import Target
from pumice.actors.gateway.request.query import list_options
from pumice.actors.gateway.request.selection import selection, traits_of
from pumice.actors.gateway.site import Site
from pumice.cluster.api.kinds import KINDS, Kind
from pumice.cluster.kube.statuses import timestamp
from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import Object, rows, section
from pumice.core.quantity import Quantity, quantity_of
from pumice.storage import codec

GROUP: Final = "metrics.k8s.io"
NODES: Final = KINDS["NodeMetrics"]
PODS: Final = KINDS.get("PodMetrics") or Kind("PodMetrics", "PodMetrics", GROUP, "v1beta1", "pods")
"""Not stored: made for each answer."""
WINDOW: Final = "30s"

_ZERO: Final = quantity_of(0)
_SLICE: Final = 100
_Usage = dict[str, Quantity]


async def get_usage(site: Site, exchange: Exchange, target: Target) -> None:
    """Answer GET of `nodes`, `nodes/NAME`, `pods`, or a namespace's pods or pod. Raises ApiError (404, 405)."""
    row = {"nodes": NODES, "pods": PODS}.get(target.plural)
    if row is None or target.subresource or (target.namespace and not row.namespaced):
        raise no_such_path()
    form = form_of(exchange, target.api_version, row.kind)
    write = writer(site.kinds, row, target.api_version, form, exchange.query)
    options = list_options(exchange.query)
    if options.watch:
        raise wrong_method("watch")
    wanted = selection(row, target.namespace, options.labels, options.fields)
    revision, measured = await _measured(site, row, target)
    found = [one for one in measured if wanted.has(traits_of(row.key, one))]
    if not target.name:
        await _list(exchange, write, found, revision, site.clock.now())
        return
    one = next((one for one in found if one["metadata"]["name"] == target.name), None)
    if one is None:
        raise not_found(row.resource, target.name, {"name": target.name, "group": row.group, "kind": row.plural})
    await answer_object(exchange, 200, write.one(one, site.clock.now()), form)


async def _list(exchange: Exchange, write: Writer, found: list[Object], revision: int, now: float) -> None:
    items: list[Any] = []
    for number, one in enumerate(found):
        items.append(write.item(one, now))
        # Others get a turn: the pods of a large cluster are thousands of rows.
        if number % _SLICE == 0:
            await lowlevel.checkpoint()
    whole = {**write.head(), "metadata": {"resourceVersion": str(revision)}, write.items: items}
    await answer_object(exchange, 200, whole, write.form)


async def _measured(site: Site, row: Kind, target: Target) -> tuple[int, list[Object]]:
    revision, blobs = await site.listing("Pod", target.namespace or None)
    now = site.clock.now()
    if row is PODS:
        return revision, [made async for pod in _decoded(blobs) if (made := pod_metrics(pod, now))]
    usage: dict[str, _Usage] = {}
    async for pod in _decoded(blobs):
        add_usage(usage, pod)
    nodes = [node async for node in _decoded((await site.listing("Node", None))[1])]
    stored = [one async for one in _decoded((await site.listing("NodeMetrics", None))[1])]
    return revision, node_metrics(nodes, usage, stored, now)


async def _decoded(blobs: tuple[bytes, ...]) -> AsyncIterator[Object]:
    """Yield objects, and let other tasks run between slices."""
    for number, blob in enumerate(blobs):
        if number % _SLICE == 0:
            await lowlevel.checkpoint()
        yield codec.unpack(blob)


def pod_metrics(pod: Object, now: float) -> Object | None:
    """Return the PodMetrics of a running pod; None for any other."""
    if not _running(pod):
        return None
    used = [{"name": one.get("name", ""), "usage": _text(_requests(one))} for one in _containers(pod)]
    return {**_head(PODS, pod, now), "containers": used}


def add_usage(usage: dict[str, _Usage], pod: Object) -> None:
    """Add what a running pod uses to its node's sum, by node name and resource."""
    if not _running(pod):
        return
    total = usage.setdefault(section(pod, "spec").get("nodeName") or "", {})
    for container in _containers(pod):
        for resource, amount in _requests(container).items():
            total[resource] = total.get(resource, _ZERO).plus(amount)


def node_metrics(
    nodes: Iterable[Object], usage: Mapping[str, _Usage], stored: Iterable[Object], now: float
) -> list[Object]:
    """Return NodeMetrics of every node: the measured ones with the node's labels, otherwise the sum of its pods."""
    known = {one["metadata"]["name"]: one for one in stored}
    made: list[Object] = []
    for node in nodes:
        name = node["metadata"]["name"]
        head = _head(NODES, node, now)
        measured = known.get(name)
        # A NodeMetrics object without usage measures nothing: the sum of the pods counts then.
        if measured is not None and section(measured, "usage"):
            # What was measured counts; the node's labels are added, since `kubectl top node -l` selects by them.
            made.append({**head, **measured, "metadata": {**head["metadata"], **measured["metadata"]}})
        else:
            made.append({**head, "usage": _text(usage.get(name, {}))})
    return made


def _running(pod: Object) -> bool:
    return section(pod, "status").get("phase") == "Running"


def _containers(pod: Object) -> list[Object]:
    spec = section(pod, "spec")
    # Sidecars run beside the other containers, and use what they request.
    return rows(spec, "containers") + [
        one for one in rows(spec, "initContainers") if one.get("restartPolicy") == "Always"
    ]


def _requests(container: Object) -> _Usage:
    requested = section(section(container, "resources"), "requests")
    return {resource: _amount(requested.get(resource)) for resource in ("cpu", "memory")}


def _amount(value: object) -> Quantity:
    try:
        return _ZERO if value is None else quantity_of(value)
    except QuantityError:
        return _ZERO


def _text(usage: _Usage) -> dict[str, str]:
    return {resource: usage.get(resource, _ZERO).canonical() for resource in ("cpu", "memory")}


def _head(row: Kind, about: Object, now: float) -> Object:
    given = section(about, "metadata")
    metadata: Object = {"name": given.get("name", ""), "creationTimestamp": timestamp(now)}
    metadata |= {field: given[field] for field in ("namespace", "labels") if given.get(field)}
    stamp = timestamp(now)
    return {
        "kind": row.kind,
        "apiVersion": row.api_version,
        "metadata": metadata,
        "timestamp": stamp,
        "window": WINDOW,
    }
