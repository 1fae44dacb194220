"""How many PodGroups of a queue are in which phase. Source: Volcano `pkg/controllers/metrics/queue.go`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from anyio import lowlevel
from msgspec import Struct
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PHASES: Final = ("Pending", "Inqueue", "Running", "Unknown", "Completed")
SLICE: Final = 1000
"""So many PodGroups are read at a stretch."""

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
    """Those with a phase, with a breath now and then."""
    counts = Counts()
    for start in range(0, len(groups), SLICE):
        for group in map(_read, groups[start : start + SLICE]):
            if group.status is not None and group.status.phase:
                counts[(group.spec and group.spec.queue) or "default", group.status.phase] += 1
        await lowlevel.checkpoint()
    return counts


def exposed_counts(queues: Iterable[str], counts: Counts) -> bytes:
    """`volcano_queue_pod_group_PHASE_count{queue_name}` of these queues in Prometheus' format."""
    registry = CollectorRegistry()
    names = list(queues)
    for phase in PHASES:
        metric = f"volcano_queue_pod_group_{phase.lower()}_count"
        gauge = Gauge(metric, f"PodGroups of a queue that are {phase}", ["queue_name"], registry=registry)
        for name in names:
            gauge.labels(name).set(counts[name, phase])
    return generate_latest(registry)
