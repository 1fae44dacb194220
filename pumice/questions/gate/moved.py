# SPDX-License-Identifier: Apache-2.0
"""Effects of a change show, whether it passes or not, jobs that wait longer or shorter, and pods on other nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from pumice.questions.gate.judging import Pair
from pumice.questions.gate.record import RecordedJob, RunRecord

SIZES: Final = ((1, "1 pod"), (8, "2 to 8 pods"), (64, "9 to 64 pods"))
LARGEST: Final = "more than 64 pods"
MOST: Final = 3
"""Number of jobs that are named in each direction: waiting more, waiting less."""
Grouping = Callable[[RecordedJob], str]
FELT_S: Final = 1.0
"""Differences of a wait below this count as none, in seconds."""


class MovedGroup(Struct, frozen=True):
    """Counts the jobs of a queue or a size, with their mean wait on both sides, in seconds."""

    group: str
    jobs: int
    base_s: float
    head_s: float


class MovedJob(Struct, frozen=True):
    """Contains a job with its wait on both sides, in seconds."""

    job: str
    base_s: float
    head_s: float


class Moved(Struct, frozen=True):
    """Lists the differences between two runs of a workload. `pods`: pods that got another node or none."""

    workload: str
    queues: tuple[MovedGroup, ...] = ()
    sizes: tuple[MovedGroup, ...] = ()
    longer: tuple[MovedJob, ...] = ()
    shorter: tuple[MovedJob, ...] = ()
    pods: int = 0
    evictions: tuple[int, int] = (0, 0)

    @property
    def is_nothing(self) -> bool:
        """Return whether both runs are equal for all waiting jobs."""
        same = all(abs(each.base_s - each.head_s) < 0.001 for each in (*self.queues, *self.sizes))
        return same and not self.pods and self.evictions[0] == self.evictions[1]


def moved(workload: str, pair: Pair) -> Moved:
    """Compare both runs of a workload."""
    horizon = pair.horizon_s
    head = {job.job: job for job in pair.head.jobs}
    both = [(job, head[job.job]) for job in pair.base.jobs if job.job in head and job.submitted <= horizon]
    changed = sorted(
        (
            MovedJob(one.job, one.wait_s(horizon), other.wait_s(horizon))
            for one, other in both
            if abs(one.wait_s(horizon) - other.wait_s(horizon)) >= FELT_S
        ),
        key=lambda each: (each.base_s - each.head_s, each.job),
    )
    return Moved(
        workload,
        tuple(_groups(both, horizon, lambda job: job.queue)),
        tuple(_groups(both, horizon, size_of)),
        tuple(each for each in changed if each.head_s > each.base_s)[:MOST],
        tuple(each for each in reversed(changed) if each.head_s < each.base_s)[:MOST],
        _pods(pair.base, pair.head),
        (len(pair.base.evictions), len(pair.head.evictions)),
    )


def size_of(job: RecordedJob) -> str:
    """Return the size class of a job."""
    return next((name for most, name in SIZES if job.pods <= most), LARGEST)


def _groups(both: list[tuple[RecordedJob, RecordedJob]], horizon: float, by: Grouping) -> Iterator[MovedGroup]:
    groups = dict[str, list[tuple[float, float]]]()
    for one, other in both:
        groups.setdefault(by(one), []).append((one.wait_s(horizon), other.wait_s(horizon)))
    for name in sorted(groups):
        waits = groups[name]
        base, head = (round(sum(each[side] for each in waits) / len(waits), 3) for side in (0, 1))
        yield MovedGroup(name, len(waits), base, head)


def _pods(base: RunRecord, head: RunRecord) -> int:
    one, other = ({bind.pod: bind.node for bind in record.binds} for record in (base, head))
    return sum(one.get(pod) != other.get(pod) for pod in {*one, *other})
