"""How many faults of which kind a storm has made, as metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client import Counter as Counting

if TYPE_CHECKING:
    from collections.abc import Mapping


def exposed_faults(struck: Mapping[str, int]) -> bytes:
    """`pumice_faults_total{kind}` in Prometheus' format; `struck`: how many, by kind."""
    registry = CollectorRegistry()
    family = Counting("pumice_faults_total", "Faults that were made, by kind", ["kind"], registry=registry)
    for kind, number in sorted(struck.items()):
        family.labels(kind).inc(number)
    return generate_latest(registry)
