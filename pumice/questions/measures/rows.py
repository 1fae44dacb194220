"""Flat rows of measures: what a table in a file holds a line of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.questions.measures.measures import Measures


@dataclass(frozen=True, slots=True)
class QueueResourceRow:
    """One resource of one queue; the columns of `QueueRow`, and amount × seconds asked for, held and deserved."""

    queue: str
    weight: int
    jobs: int
    pods: int
    ended: int
    unstarted: int
    evictions: int
    killed: int
    restarts: int
    lost_cpu_s: float
    mean_wait_s: float | None
    median_wait_s: float | None
    p95_wait_s: float | None
    mean_bounded_slowdown: float | None
    resource: str
    requested_s: float
    held_s: float
    deserved_s: float
    share: float


@dataclass(frozen=True, slots=True)
class PointRow:
    """One value of one series: the mean over the stretch that begins `start_s` seconds after the beginning."""

    what: str
    resource: str
    queue: str
    start_s: float
    value: float


def queue_resources(found: Measures) -> Iterator[QueueResourceRow]:
    """A row for each queue and resource that somebody of it asked for."""
    for row in found.queues:
        for resource, of in row.resources.items():
            yield QueueResourceRow(
                row.queue,
                row.weight,
                row.jobs,
                row.pods,
                row.ended,
                row.unstarted,
                row.evictions,
                row.killed,
                row.restarts,
                row.lost_cpu_s,
                row.mean_wait_s,
                row.median_wait_s,
                row.p95_wait_s,
                row.mean_bounded_slowdown,
                resource,
                of["requested_s"],
                of["held_s"],
                of["deserved_s"],
                of["share"],
            )


def points(found: Measures) -> Iterator[PointRow]:
    """A row for each stretch of each series."""
    for series in found.series:
        for start, value in zip(found.starts_s, series.values, strict=True):
            yield PointRow(series.what, series.resource, series.queue, start, value)
