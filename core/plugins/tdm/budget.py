"""How many pods of a job may be evicted at once. Source: Volcano tdm (`getMaxPodEvictNum`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pumice.core.life.task import TaskStatus

if TYPE_CHECKING:
    from pumice.core.session.jobs import SessionJobs
    from pumice.core.state.jobs import Job

MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
WITHOUT_BUDGET: Final = 1
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


def evictable_count(jobs: SessionJobs, job: Job) -> int:
    """By the PodGroup's annotations: minAvailable goes before maxUnavailable; without either, one pod."""
    annotations, counts, row = job.pod_group.annotations, jobs.counts, job.row
    running, total = int(counts[TaskStatus.RUNNING][row]), len(job.tasks)
    least = annotations.get(MIN_AVAILABLE)
    if least is None and annotations.get(MAX_UNAVAILABLE):
        ended = int(counts[TaskStatus.SUCCEEDED][row] + counts[TaskStatus.FAILED][row])
        missing = total - ended - running
        return max(amount_of(annotations[MAX_UNAVAILABLE], total) - missing, 0)
    if least:
        spare = running - amount_of(least, total)
        return spare if spare >= 0 else WITHOUT_BUDGET
    return WITHOUT_BUDGET


def amount_of(text: str, total: int) -> int:
    """A number, or a percentage of `total` rounded up; 0 for anything else."""
    if _INTEGER.fullmatch(text):
        return int(text)
    if text.endswith("%") and _INTEGER.fullmatch(text[:-1]):
        return -(-int(text[:-1]) * total // 100)
    return 0
