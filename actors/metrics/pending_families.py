"""Jobs that wait for nodes as Prometheus families, made when somebody asks. Source: Volcano `metrics.go`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


MOST: Final = 1_000
"""Jobs that wait no more and are shown. Volcano shows a job until it is gone, which is not heard of here."""


class PendingFamilies(Collector):
    """A job that is pending no more is shown no more, but for how often it was tried: the newest `MOST` are."""

    def __init__(self) -> None:
        self._tasks: Mapping[str, int] = {}
        self._tries: Counter[str] = Counter()

    def show(self, unscheduled: Mapping[str, int]) -> None:
        """From now on these tasks without a node, by job; each job was tried once more."""
        self._tasks = unscheduled
        for job in unscheduled:
            self._tries[job] += 1
        if len(self._tries) > len(unscheduled) + MOST + MOST // 10:
            self._forget(unscheduled)

    def _forget(self, unscheduled: Mapping[str, int]) -> None:
        done = [job for job in self._tries if job not in unscheduled]
        for job in done[:-MOST]:
            del self._tries[job]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Tasks and tries by job, and how many jobs."""
        yield _by_job("unschedule_task_count", self._tasks)
        yield GaugeMetricFamily("volcano_unschedule_job_count", "unschedule job count", value=len(self._tasks))
        yield _by_job("job_retry_counts", self._tries)


def _by_job(name: str, values: Mapping[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"volcano_{name}", name.replace("_", " "), labels=("job_id",))
    for job, value in values.items():
        family.add_metric((job,), value)
    return family
