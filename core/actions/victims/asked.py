"""Who may be asked to go: a mask over the tasks of one node or of a thousand, before any plugin is heard.

Source: Volcano `actions/preempt`, `actions/reclaim` (their filters).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.life.task import TaskStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.batches import BoolArray, TaskBatch
    from pumice.core.session.session import Session

    BatchFilter = Callable[[TaskBatch], BoolArray]


def movable(session: Session, preemptor: Task, *, own_job: bool) -> BatchFilter:
    """Bound or running preemptable tasks of other jobs in the preemptor's queue, or with `own_job` of its own job; for
    a best-effort preemptor only best-effort ones.
    """
    own, queues = session.job_row(preemptor), session.snapshot.jobs.queue

    def accepts(batch: TaskBatch) -> BoolArray:
        facts = batch.facts
        status = facts.status[batch.rows]
        mask: BoolArray = (status == TaskStatus.RUNNING.value) | (status == TaskStatus.BOUND.value)
        mask &= facts.preemptable[batch.rows]
        if preemptor.template.best_effort:
            mask &= facts.best_effort[batch.rows]
        if own_job:
            mask &= batch.job == own
            return mask
        mask &= (batch.job >= 0) & (batch.job != own)
        mask &= queues[batch.job] == queues[own]
        return mask

    return accepts


def reclaimable(session: Session, reclaimer: Task) -> BatchFilter:
    """Running preemptable tasks of other queues that may be reclaimed from."""
    own, queues = session.job_row(reclaimer), session.snapshot.jobs.queue
    gives = np.array([queue.reclaimable for queue in session.snapshot.queues], dtype=np.bool_)

    def accepts(batch: TaskBatch) -> BoolArray:
        facts = batch.facts
        mask: BoolArray = (facts.status[batch.rows] == TaskStatus.RUNNING.value) & facts.preemptable[batch.rows]
        mask &= batch.job >= 0
        mask &= queues[batch.job] != queues[own]
        mask[mask] = gives[queues[batch.job[mask]]]
        return mask

    return accepts


def asked(session: Session, nodes: Iterable[int], accepts: BatchFilter) -> TaskBatch:
    """Those on these nodes whom the filter lets through."""
    batch = session.residents.on(nodes)
    return batch.only(accepts(batch))
