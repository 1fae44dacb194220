"""When jobs got their nodes and how long they waited, as Prometheus families. Source: Volcano `metrics.go`,
`allocate.go`.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pumice.core.messages.decisions import BindingJob

LABELS: Final = ("job_name", "queue", "job_namespace")
MOST: Final = 1_000
"""Jobs that are shown: those that got nodes last. Volcano shows a job until it is gone, however many there are."""


class JobFamilies(Collector):
    """`volcano_e2e_job_scheduling_` `duration` (milliseconds from a job's creation to the newest node it got),
    `start_time` and `last_time` (those two moments, in seconds since the epoch).
    """

    def __init__(self) -> None:
        self._placed: dict[tuple[str, str, str], tuple[float, float, float]] = {}

    def placed(self, jobs: Mapping[str, BindingJob], now: float) -> list[float]:
        """Note the jobs that got nodes at `now`, by "namespace/name"; how long each has waited, in milliseconds."""
        waits: list[float] = []
        for key, job in jobs.items():
            namespace, _, name = key.partition("/")
            labels, waited = (name, job.queue, namespace), max(now - job.created, 0.0) * 1e3
            self._placed.pop(labels, None)  # the newest stand last
            self._placed[labels] = (waited, job.created, now)
            waits.append(waited)
        for labels in [*islice(self._placed, max(len(self._placed) - MOST, 0))]:
            del self._placed[labels]
        return waits

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Three families."""
        texts = {
            "duration": "Milliseconds from the creation of a job to the newest node that one of its tasks got",
            "start_time": "When a job was created, in seconds since the epoch",
            "last_time": "When a job got its newest node, in seconds since the epoch",
        }
        for place, (name, text) in enumerate(texts.items()):
            family = GaugeMetricFamily(f"volcano_e2e_job_scheduling_{name}", text, labels=LABELS)
            for labels, values in self._placed.items():
                family.add_metric(labels, values[place])
            yield family
