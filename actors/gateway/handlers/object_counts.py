"""How many objects of which resource there are, under the name that a kube-apiserver gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge, generate_latest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.cluster.api.kind_table import KindTable


def exposed_objects(kinds: KindTable, counts: Mapping[str, int]) -> bytes:
    """`apiserver_resource_objects{group, resource}` in Prometheus' format, of the counts by key of kind."""
    registry = CollectorRegistry()
    gauge = Gauge("apiserver_resource_objects", "Objects that are there", ["group", "resource"], registry=registry)
    for key, number in sorted(counts.items()):
        row = kinds.by_key(key)
        if row is not None:
            gauge.labels(row.group, row.plural).set(number)
    return generate_latest(registry)
