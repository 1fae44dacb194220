"""How many faults of which kind a storm has made."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client import Counter as Counting

if TYPE_CHECKING:
    from collections.abc import Iterable


def exposed_faults(struck: Iterable[str]) -> bytes:
    """`pumice_faults_total{kind}` in Prometheus' format, of the kinds of all that struck."""
    registry = CollectorRegistry()
    family = Counting("pumice_faults_total", "Faults that were made, by kind", ["kind"], registry=registry)
    for kind, number in sorted(Counter(struck).items()):
        family.labels(kind).inc(number)
    return generate_latest(registry)
