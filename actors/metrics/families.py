# SPDX-License-Identifier: Apache-2.0
"""Prometheus families made on demand: jobs that wait for nodes, and the agreement of a shadow."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pumice.core.messages.events import ShadowCompared

# --- Jobs that wait for nodes
# Source: Volcano `metrics.go`.

MOST: Final = 1_000
"""Jobs that wait no more and are shown. Volcano shows a job until it is gone, which is not heard of here."""


class PendingFamilies(Collector):
    """Pending tasks and tries. A job that is not pending any more is hidden; the retry counts of the newest `MOST` jobs
    stay.
    """

    def __init__(self) -> None:
        self._tasks: Mapping[str, int] = {}
        self._tries: Counter[str] = Counter()

    def show(self, unscheduled: Mapping[str, int]) -> None:
        """Show these tasks without a node, by job, from now on; each job was tried once more."""
        self._tasks = unscheduled
        for job in unscheduled:
            self._tries[job] += 1
        # A tenth more before anything is forgotten, so that this happens seldom.
        if len(self._tries) > len(unscheduled) + MOST + MOST // 10:
            self._forget(unscheduled)

    def _forget(self, unscheduled: Mapping[str, int]) -> None:
        done = [job for job in self._tries if job not in unscheduled]
        for job in done[:-MOST]:
            del self._tries[job]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield tasks and tries by job, and the number of jobs."""
        yield _by_job("unschedule_task_count", self._tasks)
        yield GaugeMetricFamily("volcano_unschedule_job_count", "unschedule job count", value=len(self._tasks))
        yield _by_job("job_retry_counts", self._tries)


def _by_job(name: str, values: Mapping[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"volcano_{name}", name.replace("_", " "), labels=("job_id",))
    for job, value in values.items():
        family.add_metric((job,), value)
    return family


RESULTS: Final = ("same", "ties", "other_node", "only_there", "only_here")


class ShadowFamilies(Collector):
    """Agreement of a shadow; empty before the first comparison."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._newest: ShadowCompared | None = None
        self._stands: ShadowCompared | None = None

    def note(self, compared: ShadowCompared) -> None:
        """Count one more comparison."""
        self._newest = compared
        for name in (*RESULTS, "decisions"):
            self._counts[name] += getattr(compared, name)
        if compared.groups >= 0:
            self._stands = compared

    def collect(self) -> Iterator[Metric]:
        """Yield decisions by result, their share, and the counts of the present state."""
        if self._newest is None:
            return
        decisions = CounterMetricFamily(
            "pumice_shadow_decisions",
            "Decisions of the cluster's scheduler and of the shadow, by how they compare; ties are among the same",
            labels=("result",),
        )
        for name in RESULTS:
            decisions.add_metric((name,), self._counts[name])
        yield decisions
        if self._counts["decisions"]:
            share = self._counts["same"] / self._counts["decisions"]
            yield GaugeMetricFamily("pumice_shadow_agreement", "Share of its decisions that are the same", share)
        stands = self._stands
        if stands is not None:
            yield _compared("phases", "PodGroups, by whether they have this phase", stands.groups, stands.other_phases)
            yield _compared("reasons", "Waiting pods, by whether this is why", stands.waiting, stands.other_reasons)
            yield GaugeMetricFamily(
                "pumice_shadow_other_conditions", "PodGroups with other conditions here", stands.other_conditions
            )


def _compared(name: str, text: str, number: int, other: int) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"pumice_shadow_{name}", text, labels=("result",))
    family.add_metric(("same",), max(number - other, 0))
    family.add_metric(("other",), other)
    return family
