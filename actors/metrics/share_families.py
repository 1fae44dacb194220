"""Shares of jobs and namespaces as Prometheus families, made when somebody asks. Source: Volcano `metrics/job.go`,
`metrics/namespace.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from pumice.core.messages.job_shares import JobShares

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.core.state.columns import FloatArray

MOST: Final = 1_000
"""Jobs that are shown: those with the largest shares. Volcano shows all."""
WEIGHT: Final = 1.0
"""Of every namespace: Volcano declares the metric and knows no other weights any more."""
OF_NAMESPACES: Final = {
    "share": "Share for one namespace",
    "weight": "Weight for one namespace",
    "weighted_share": "Weighted share for one namespace",
}


class ShareFamilies(Collector):
    """Shows the newest shares; who is gone is shown no more."""

    def __init__(self) -> None:
        self._newest = JobShares()

    def show(self, shares: JobShares) -> None:
        """From now on these."""
        self._newest = shares

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One family of jobs, three of namespaces."""
        newest, shares = self._newest, self._newest.by_job()
        family = GaugeMetricFamily("volcano_job_share", "Share for one job", labels=("job_ns", "job_id"))
        for place in _largest(shares):
            namespace, _, name = newest.jobs[place].partition("/")
            family.add_metric((namespace, name), float(shares[place]))
        yield family
        for name, text in OF_NAMESPACES.items():
            family = GaugeMetricFamily(f"volcano_namespace_{name}", text, labels=("namespace_name",))
            for namespace, share in zip(newest.namespaces, newest.by_namespace().tolist(), strict=True):
                family.add_metric((namespace,), WEIGHT if name == "weight" else share / WEIGHT)
            yield family


def _largest(shares: FloatArray) -> list[int]:
    places: list[int] = np.argsort(-shares, kind="stable")[:MOST].tolist()
    return places
