# SPDX-License-Identifier: Apache-2.0
"""/healthz, /livez, /readyz and /metrics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from anyio import lowlevel
from msgspec import Struct
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client import Counter as Counting

from pumice.actors.gateway.problems import no_such_path
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.site import Site, guarded
from pumice.actors.runtime.mailbox import ask_again, expected
from pumice.core.messages import commands
from pumice.core.messages.commands import FaultsRead, ReadFaults, TellQueues
from pumice.core.messages.replies import Exposition
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.cluster.api.kind_table import KindTable

# --- PodGroups of queues by phase
# Source: Volcano `pkg/controllers/metrics/queue.go`.

PHASES: Final = ("Pending", "Inqueue", "Running", "Unknown", "Completed")
SLICE: Final = 1000
"""Number of PodGroups that are read at a stretch."""

Counts = Counter[tuple[str, str]]
"""By queue and phase."""


class _Spec(Struct):
    queue: str | None = None


class _Status(Struct):
    phase: str | None = None


class _PodGroup(Struct):
    spec: _Spec | None = None
    status: _Status | None = None


_read = codec.decoder(_PodGroup)


async def counted(groups: Sequence[bytes]) -> Counts:
    """Return those with a phase, with a breath now and then."""
    counts = Counts()
    for start in range(0, len(groups), SLICE):
        for group in map(_read, groups[start : start + SLICE]):
            if group.status is not None and group.status.phase:
                counts[(group.spec and group.spec.queue) or "default", group.status.phase] += 1
        await lowlevel.checkpoint()
    return counts


def exposed_counts(queues: Iterable[str], counts: Counts) -> bytes:
    """Return `volcano_queue_pod_group_PHASE_count{queue_name}` of these queues in Prometheus' format."""
    registry = CollectorRegistry()
    names = list(queues)
    for phase in PHASES:
        metric = f"volcano_queue_pod_group_{phase.lower()}_count"
        gauge = Gauge(metric, f"PodGroups of a queue that are {phase}", ["queue_name"], registry=registry)
        for name in names:
            gauge.labels(name).set(counts[name, phase])
    return generate_latest(registry)


# --- Faults of a storm


def exposed_faults(struck: Mapping[str, int]) -> bytes:
    """Return `pumice_faults_total{kind}` in Prometheus' format; `struck`: the number by kind."""
    registry = CollectorRegistry()
    family = Counting("pumice_faults_total", "Faults that were made, by kind", ["kind"], registry=registry)
    for kind, number in sorted(struck.items()):
        family.labels(kind).inc(number)
    return generate_latest(registry)


# --- Objects by resource, named as kube-apiserver names the metric


def exposed_objects(kinds: KindTable, counts: Mapping[str, int]) -> bytes:
    """Return `apiserver_resource_objects{group, resource}` in Prometheus' format, from the counts by key of kind."""
    registry = CollectorRegistry()
    gauge = Gauge("apiserver_resource_objects", "Objects that are there", ["group", "resource"], registry=registry)
    for key, number in sorted(counts.items()):
        row = kinds.by_key(key)
        if row is not None:
            gauge.labels(row.group, row.plural).set(number)
    return generate_latest(registry)


CHECKS = {"livez": ("ping",), "healthz": ("ping", "api"), "readyz": ("ping", "api", "watches")}
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


async def health(site: Site, exchange: Exchange) -> None:
    """Answer `ok`, or with ?verbose every check by name; 503 while a check fails."""
    which, _, check = exchange.path.strip("/").partition("/")
    if check and check not in CHECKS[which]:
        raise no_such_path()
    found = {name: await _holds(site, name) for name in ((check,) if check else CHECKS[which])}
    if "verbose" in exchange.query or not all(found.values()):
        lines = [f"[{'+' if good else '-'}]{name} {'ok' if good else 'failed'}" for name, good in found.items()]
        verdict = "passed" if all(found.values()) else "failed"
        text = "\n".join([*lines, f"{which} check {verdict}\n"])
    else:
        text = "ok"
    await exchange.answer(200 if all(found.values()) else 503, text.encode(), "text/plain; charset=utf-8")


async def _holds(site: Site, check: str) -> bool:
    if check == "watches":
        return site.hub.ready.is_set()
    if check == "api":
        return not site.api.closed
    return True


async def metrics(site: Site, exchange: Exchange) -> None:
    """Answer with Prometheus' text format, with Volcano's metric names."""
    if site.runner is not None:
        # The runner reports queues on request only, so that no cycle pays for gauges that no client reads.
        await guarded(ask_again(site.runner, TellQueues()))
    answer = expected(await guarded(site.metrics.ask(commands.Expose())), Exposition)
    counts = await _queue_counts(site)
    faults = exposed_faults(await _faults(site)) if site.stormy else b""
    objects = exposed_objects(site.kinds, site.hub.counts())
    await exchange.answer(200, answer.text + counts + objects + faults + site.waiting.text(), METRICS_TYPE)


async def _queue_counts(site: Site) -> bytes:
    _, queues = await site.listing("Queue", None)
    _, groups = await site.listing("PodGroup", None)
    return exposed_counts((codec.unpack(blob)["metadata"]["name"] for blob in queues), await counted(groups))


async def _faults(site: Site) -> dict[str, int]:
    reply = await guarded(ask_again(site.api, ReadFaults()))
    return expected(reply, FaultsRead).struck
