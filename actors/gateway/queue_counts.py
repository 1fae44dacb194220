"""How many PodGroups of a queue are in which phase, as its status counts them. Source: Volcano
`pkg/controllers/metrics/queue.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from core.objects.metadata import section

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.objects.metadata import Object

PHASES: Final = ("pending", "inqueue", "running", "unknown", "completed")


def exposed_counts(queues: Iterable[Object]) -> bytes:
    """`volcano_queue_pod_group_PHASE_count{queue_name}` in Prometheus' format."""
    registry = CollectorRegistry()
    gauges = {
        phase: Gauge(
            f"volcano_queue_pod_group_{phase}_count",
            f"PodGroups of a queue that are {phase.capitalize()}",
            ["queue_name"],
            registry=registry,
        )
        for phase in PHASES
    }
    for queue in queues:
        status = section(queue, "status")
        for phase, gauge in gauges.items():
            gauge.labels(queue["metadata"]["name"]).set(int(status.get(phase) or 0))
    return generate_latest(registry)
