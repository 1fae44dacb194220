"""Victims on one node: who may be asked to go, whether they make room enough, and who is to go first.

Source: Volcano `util.ValidateVictims`, `actions/preempt` (filters, taskEligibleToPreempt).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.life.task import TaskStatus
from core.resources import MIN_RESOURCE
from core.session.reasons import Code, FitFailure
from core.session.trail.records import Ending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from core.objects.pod import Task
    from core.session.reasons import Reason
    from core.session.session import Session
    from core.session.statement import Statement

NEVER = "Never"


def tasks_that(session: Session, node: int, accepts: Callable[[Task], bool]) -> list[Task]:
    """The tasks on a node that a filter lets through, in namespace/name order."""
    return [task for task in session.nodes.tasks_on(node) if accepts(task)]


def of_other_jobs(session: Session, preemptor: Task) -> Callable[[Task], bool]:
    """Bound or running preemptable tasks of other jobs in the preemptor's queue; for a best-effort preemptor only
    best-effort ones.
    """
    own = session.job_of(preemptor)
    assert own is not None
    queue, takes = own.pod_group.queue, _takes(session, preemptor)

    def accepts(task: Task) -> bool:
        if task.job == preemptor.job or not takes(task):
            return False
        job = session.job_of(task)
        return job is not None and job.pod_group.queue == queue

    return accepts


def of_own_job(session: Session, preemptor: Task) -> Callable[[Task], bool]:
    """Which tasks of the preemptor's own job may be its victims."""
    takes = _takes(session, preemptor)
    return lambda task: task.job == preemptor.job and takes(task)


def _takes(session: Session, preemptor: Task) -> Callable[[Task], bool]:
    status, best_effort = session.jobs.status, preemptor.template.best_effort

    def takes(task: Task) -> bool:
        state = status[task.row]
        if state != TaskStatus.RUNNING and state != TaskStatus.BOUND:
            return False
        return task.preemptable and (task.template.best_effort or not best_effort)

    return takes


def of_other_queues(session: Session, reclaimer: Task) -> Callable[[Task], bool]:
    """Running preemptable tasks of other queues that may be reclaimed from."""
    own = session.job_of(reclaimer)
    assert own is not None
    queue, status = own.pod_group.queue, session.jobs.status

    def accepts(task: Task) -> bool:
        if status[task.row] != TaskStatus.RUNNING or not task.preemptable:
            return False
        job = session.job_of(task)
        return job is not None and job.pod_group.queue != queue and session.queue_of(job).reclaimable

    return accepts


def make_room(session: Session, task: Task, node: int, victims: Iterable[Task]) -> bool:
    """Whether the task fits once all these victims have gone (ValidateVictims); no victims at all may do."""
    return fits(task, available(session, task, node, victims))


def end_in_vain(session: Session, task: Task, node: int) -> None:
    """Tell how a try with the victims gone ended: a plugin refused the placement (`session.objection` is of this try
    alone), or there was no room still.
    """
    ending = Ending.PLACEMENT_REFUSED if session.objection else Ending.STILL_NO_ROOM
    session.trail.task_ended(task, ending, session.objection, node)


def available(session: Session, task: Task, node: int, victims: Iterable[Task]) -> dict[int, float]:
    """FutureIdle of the node with the victims' requests added, in the dimensions the task asks for."""
    future = session.nodes.future_at
    room = {dimension: float(future[dimension][node]) for dimension, _ in task.template.items}
    for victim in victims:
        add_request(room, victim)
    return room


def add_request(room: dict[int, float], victim: Task) -> None:
    """The victim's request becomes room."""
    for dimension, value in victim.template.items:
        if dimension in room:
            room[dimension] += value


def fits(task: Task, room: dict[int, float]) -> bool:
    """InitResreq <= room, tolerant."""
    return all(value - room[dimension] < MIN_RESOURCE for dimension, value in task.template.items)


def room_ending(statement: Statement, before: int) -> Ending:
    """How it ended for a task that was promised room: all operations since `before` but its own are evictions."""
    return Ending.ROOM_MADE if len(statement) > before + 1 else Ending.ROOM_TO_COME


def is_eligible(session: Session, preemptor: Task) -> bool:
    """Whether the task may preempt at all (taskEligibleToPreempt).

    Not with policy Never; not while its nominated node still may take it: the filters pass there, or somebody less
    important is leaving that node for it.
    """
    if preemptor.template.preemption_policy == NEVER:
        return False
    nominated = session.nominated_node(preemptor)
    if not nominated:
        return True
    row = session.nodes.row.get(nominated, -1)
    if row < 0:
        return False
    reasons = _reasons_at(session, preemptor, row)
    if any(reason.code == Code.UNRESOLVABLE for reason in reasons):
        return True
    # Filters that find no state of a PreFilter fail, so a task that nobody has looked at yet in this session is not
    # held to pass.
    unseen = preemptor.row not in session.pre_filtered and bool(session.points.predicate.rules)
    if not reasons and not unseen:
        return False
    own = preemptor.pod_priority or 0
    return not any(task.preempted and (task.pod_priority or 0) < own for task in session.nodes.tasks_on(row))


def _reasons_at(session: Session, task: Task, row: int) -> tuple[Reason, ...]:
    """Why the filters refuse a node; none as well where PreFilter fails (the action will find that out itself)."""
    try:
        search = session.searches.get(task, room=False)
    except FitFailure:
        return ()
    return session.reasons.reasons(search.filter_code(row))
