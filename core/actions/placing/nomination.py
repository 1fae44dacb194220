# SPDX-License-Identifier: Apache-2.0
"""Placing a group in the room that an earlier action made for it.

Source: Volcano `allocateFromNomination`, `validateNomination`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.session.reasons import FitFailure
from pumice.core.session.search.node_search import ErrorCache

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.heap import PopSource
    from pumice.core.session.jobs import SubJob
    from pumice.core.session.session import Session
    from pumice.core.session.statement import Statement


def allocate_as_nominated(
    session: Session, sub_job: SubJob, tasks: PopSource[Task], *, cache_errors: bool
) -> Statement | None:
    """Place all of the group's tasks on their nominated nodes and return the statement; None when the nomination is
    void and the usual search follows.
    """
    statement = _try(session, sub_job, tasks.clone(), ErrorCache(cache_errors))
    if statement is None:
        _invalidate(session, sub_job, tasks.clone())
        return None
    while len(tasks):
        tasks.pop()
    tree = session.topology.tree
    sub_job.allocated_hyper_node = tree.lowest_common(sub_job.allocated_hyper_node, sub_job.nominated_hyper_node)
    return statement


def _try(session: Session, sub_job: SubJob, tasks: PopSource[Task], cache: ErrorCache) -> Statement | None:
    domain = session.topology.tree.domains.get(sub_job.nominated_hyper_node)
    if domain is None or not len(domain.rows):
        return None
    plan = _plan(session, sub_job, tasks, set(domain.rows.tolist()), cache)
    if plan is None:
        return None
    statement = session.statement()
    for task, node in plan:
        if sub_job.network_topology is not None:
            session.topology.heading[task.row] = domain.name
        if session.nodes.fits_idle(node, task):
            session.copies.act_as_held(task)
            done = statement.allocate(task, node)
        elif session.nodes.fits_future(node, task):
            session.copies.act_as_held(task)
            done = statement.pipeline(task, node, evicted=False)
        else:
            done = True  # Volcano counts a task that fits nowhere any more as done, without an operation
        if not done:
            statement.discard()
            return None
    return statement


def _plan(
    session: Session, sub_job: SubJob, tasks: PopSource[Task], inside: set[int], cache: ErrorCache
) -> list[tuple[Task, int]] | None:
    """Return every task with its nominated node, each checked alone; None at the first that does not fit."""
    queue = session.queue_of(sub_job.job)
    plan: list[tuple[Task, int]] = []
    while len(tasks):
        task = tasks.pop()
        node = session.nodes.row.get(session.nominated_node(task), -1)
        if not session.points.allocatable(queue, task) or node not in inside:
            return None
        try:
            search = session.search_for(task)
        except FitFailure:
            return None
        search.refresh(cache)
        session.carry.start = 0
        if search.codes[node]:
            return None
        plan.append((task, node))
    return plan


def _invalidate(session: Session, sub_job: SubJob, tasks: PopSource[Task]) -> None:
    sub_job.nominated_hyper_node = ""
    while len(tasks):
        session.forget_nomination(tasks.pop())
