"""How long jobs waited for their nodes, as a Prometheus family. Source: Volcano `metrics.go`, `allocate.go`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from core.messages.decisions import BindingJob

MOST: Final = 1_000
"""Jobs that are shown: those that got nodes last. Volcano shows a job until it is gone, however many there are."""


class JobFamilies(Collector):
    """`volcano_e2e_job_scheduling_duration`: from a job's creation to the newest node it got, in milliseconds."""

    def __init__(self) -> None:
        self._waited: dict[tuple[str, str, str], float] = {}

    def placed(self, jobs: Mapping[str, BindingJob], now: float) -> list[float]:
        """Note the jobs that got nodes at `now`, by "namespace/name"; how long each has waited, in milliseconds."""
        waits: list[float] = []
        for key, job in jobs.items():
            namespace, _, name = key.partition("/")
            labels, waited = (name, job.queue, namespace), max(now - job.created, 0.0) * 1e3
            self._waited.pop(labels, None)  # the newest stand last
            self._waited[labels] = waited
            waits.append(waited)
        for labels in list(self._waited)[: max(len(self._waited) - MOST, 0)]:
            del self._waited[labels]
        return waits

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One family."""
        text = "Milliseconds from the creation of a job to the newest node that one of its tasks got"
        names = ("job_name", "queue", "job_namespace")
        family = GaugeMetricFamily("volcano_e2e_job_scheduling_duration", text, labels=names)
        for labels, waited in self._waited.items():
            family.add_metric(labels, waited)
        yield family
