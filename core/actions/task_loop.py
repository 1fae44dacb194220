"""The task loop:

the tasks of one group, one after the other, onto a set of nodes. Source: Volcano `allocateResourcesForTasks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.session.reasons import FitErrors, FitFailure
from core.session.search import ErrorCache

if TYPE_CHECKING:
    from core.objects.pod import Task
    from core.session.heap import Source
    from core.session.search import NodeSearch
    from core.session.session import Session
    from core.session.statement import Statement
    from core.session.subjobs import SubJob

NO_NODE = -1


def allocate_tasks(session: Session, sub_job: SubJob, tasks: Source[Task], *, cache_errors: bool) -> Statement | None:
    """Place tasks until the group is ready or nothing goes on. None: it came to nothing and was undone."""
    if not session.nodes.count:
        return None
    job, cache = sub_job.job, ErrorCache(cache_errors)
    queue = session.queue_of(job)
    statement = session.statement()
    while len(tasks):
        task = tasks.pop()
        if not session.points.all_agree("Allocatable", queue, task):
            session.fit.held_back.add(task.row)
            continue
        if task.gated:
            continue
        if session.fit.role_has_failed(job, sub_job, task):
            text = f"Task {task.name} with role spec {task.role} has already predicated failed, skip"
            session.fit.record(job, sub_job, task, FitErrors(session.reasons, text=text))
            continue
        node = _find(session, sub_job, task, cache)
        if node == NO_NODE:
            if session.fit.worth_continuing(job, sub_job):
                continue
            break
        placed = _place(session, statement, task, node)
        if placed and session.sub_job_ready(sub_job):
            break
    if session.sub_job_ready(sub_job) or session.sub_job_pipelined(sub_job):
        return statement
    statement.discard()
    return None


def _find(session: Session, sub_job: SubJob, task: Task, cache: ErrorCache) -> int:
    """The best node's row; NO_NODE after recording why there is none."""
    job = sub_job.job
    try:
        search = session.search_for(task)
    except FitFailure as failure:
        session.fit.record(job, sub_job, task, session.fit_failure(task, failure.reason))
        return NO_NODE
    search.refresh(cache)
    nominated = _nominated(session, search, task)
    if nominated != NO_NODE:
        return nominated
    node, codes = search.choose()
    if node == NO_NODE:
        session.fit.record(job, sub_job, task, FitErrors(session.reasons, codes.copy()))
    return node


def _nominated(session: Session, search: NodeSearch, task: Task) -> int:
    """The node that evictions of an earlier cycle made room on is tried alone, before all others."""
    row = session.nodes.row.get(task.nominated, NO_NODE) if task.nominated else NO_NODE
    if row == NO_NODE or not session.nodes.fits_future(row, task):
        return NO_NODE
    session.carry.start = 0  # looking at a list of one node starts the next search at the front
    return row if search.codes[row] == 0 else NO_NODE


def _place(session: Session, statement: Statement, task: Task, node: int) -> bool:
    """Allocate what fits into idle room, promise what fits into room to come."""
    if session.nodes.fits_idle(node, task):
        return statement.allocate(task, node)
    if session.nodes.fits_future(node, task):
        return statement.pipeline(task, node, evicted=False)
    return False
