# SPDX-License-Identifier: Apache-2.0
"""Victims on one node: whether they make enough room, and the tasks that may have victims.

Source: Volcano `util.ValidateVictims`, `actions/preempt` (taskEligibleToPreempt).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.life.task import TaskStatus
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.reasons import Code, FitFailure
from pumice.core.session.search.filters import NO_STATE, reject_unasked
from pumice.core.session.trail.records import Ending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import BoolArray, TaskBatch
    from pumice.core.session.session import Session

    BatchFilter = Callable[[TaskBatch], BoolArray]
    from pumice.core.session.reasons import Reason
    from pumice.core.session.statement import Statement

# --- Tasks that may be asked to go
# Source: Volcano `actions/preempt`, `actions/reclaim` (their filters).


def movable(session: Session, preemptor: Task, *, own_job: bool) -> BatchFilter:
    """Return bound or running preemptable tasks of other jobs in the preemptor's queue, or with `own_job` of its own
    job; for a best-effort preemptor only best-effort ones.
    """
    own, queues = session.job_row(preemptor), session.snapshot.jobs.queue

    def accepts(batch: TaskBatch) -> BoolArray:
        facts = batch.facts
        status = facts.status[batch.rows]
        # preempt takes bound tasks, too; reclaim only running ones.
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
    """Return running preemptable tasks of other queues that allow reclaim."""
    own, queues = session.job_row(reclaimer), session.snapshot.jobs.queue
    gives = np.array([queue.reclaimable for queue in session.snapshot.queues], dtype=np.bool_)

    def accepts(batch: TaskBatch) -> BoolArray:
        facts = batch.facts
        mask: BoolArray = (facts.status[batch.rows] == TaskStatus.RUNNING.value) & facts.preemptable[batch.rows]
        mask &= batch.job >= 0
        mask &= queues[batch.job] != queues[own]
        # Only among those that are left: their jobs are known, while -1 would read another job's queue.
        mask[mask] = gives[queues[batch.job[mask]]]
        return mask

    return accepts


def asked(session: Session, nodes: Iterable[int], accepts: BatchFilter) -> TaskBatch:
    """Return the tasks on these nodes that the filter lets through."""
    batch = session.residents.on(nodes)
    return batch.only(accepts(batch))


NEVER = "Never"


def make_room(session: Session, task: Task, node: int, victims: Iterable[Task]) -> bool:
    """Return whether the task fits after all these victims have gone (ValidateVictims); `victims` may be empty."""
    return fits(task, available(session, task, node, victims))


def end_in_vain(session: Session, task: Task, node: int) -> None:
    """Tell how a try with the victims gone ended: a plugin refused the placement (`session.objection` is of this try
    alone), or there was no room still.
    """
    ending = Ending.PLACEMENT_REFUSED if session.objection else Ending.STILL_NO_ROOM
    session.trail.task_ended(task, ending, session.objection, node)


def available(session: Session, task: Task, node: int, victims: Iterable[Task]) -> dict[int, float]:
    """Return FutureIdle of the node plus the victims' requests, in the dimensions that the task requests."""
    future = session.nodes.future_at
    room = {dimension: float(future[dimension][node]) for dimension, _ in task.template.items}
    for victim in victims:
        add_request(room, victim)
    return room


def add_request(room: dict[int, float], victim: Task) -> None:
    """Add the victim's request to the room."""
    for dimension, value in victim.template.items:
        if dimension in room:
            room[dimension] += value


def fits(task: Task, room: dict[int, float]) -> bool:
    """Return whether InitResreq <= room, within Volcano's tolerance."""
    return all(value - room[dimension] < MIN_RESOURCE for dimension, value in task.template.items)


def room_ending(statement: Statement, before: int) -> Ending:
    """Return the ending for a promise of room: all operations since `before`, except its own, are evictions."""
    return Ending.ROOM_MADE if len(statement) > before + 1 else Ending.ROOM_TO_COME


def is_eligible(session: Session, preemptor: Task) -> bool:
    """Return whether the task may preempt at all (taskEligibleToPreempt).

    Not with policy Never; not while its nominated node still may take it: the filters pass there, or a pod less
    important is leaving that node for it.
    """
    if preemptor.template.preemption_policy == NEVER:
        return False
    nominated = session.nominated_node(preemptor)
    if not nominated:
        return True
    row = session.nodes.row.get(nominated, -1)
    # The nominated node is gone: Volcano then lets the task not preempt at all.
    if row < 0:
        return False
    reasons = _reasons_at(session, preemptor, row)
    # No eviction helps there: the task may look for room elsewhere.
    if any(reason.code == Code.UNRESOLVABLE for reason in reasons):
        return True
    if not reasons:
        return False
    own = preemptor.pod_priority or 0
    return not any(task.preempted and (task.pod_priority or 0) < own for task in session.nodes.tasks_on(row))


def _reasons_at(session: Session, task: Task, row: int) -> tuple[Reason, ...]:
    """Return why the filters refuse a node; empty also where PreFilter fails, since the action finds that out itself.

    PreFilter is not asked for this: what it counts is as it was when the task was last searched for, though others may
    have been placed or taken back since (`Session.counted`).
    """
    seen = task.row in session.pre_filtered
    if not seen and not session.counts_anew:
        return session.reasons.reasons(reject_unasked(session, task, row))
    try:
        search, counted = session.searches.get(task, room=False), session.counted.get(task.row)
        code = search.filter_code(row) if counted is None else search.filters.reject_by(counted, row)
    except FitFailure:
        code = 0
    if not (code or seen) and session.points.predicate.rules:  # under earlier rules
        return (NO_STATE,)
    return session.reasons.reasons(code)
