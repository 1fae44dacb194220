# SPDX-License-Identifier: Apache-2.0
"""The task loop: place the tasks of one group, one after the other, on a set of nodes. Source: Volcano
`allocateResourcesForTasks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.session.reasons import FitErrors, FitFailure
from pumice.core.session.search.node_search import ErrorCache
from pumice.core.session.trail.records import Ending
from pumice.core.state.hypernodes import TOP

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.heap import PopSource
    from pumice.core.session.jobs import SubJob
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.search.node_search import NodeSearch
    from pumice.core.session.session import Session
    from pumice.core.session.statement import Statement
    from pumice.core.state.hypernodes import Domain

NO_NODE = -1
UNSCORED = -2
"""Nodes would do, but they could not be scored."""
NAMED: Final = "pre-filters-name-domains"
HEADED: Final = "tasks-without-a-node-head-for-domains"
"""Former rules, under which old journals are replayed (`pumice.config.rules`)."""


def allocate_tasks(
    session: Session, sub_job: SubJob, tasks: PopSource[Task], domain: Domain, *, cache_errors: bool
) -> Statement | None:
    """Place tasks on a domain's nodes until the group is ready or no further task can be placed.

    None: it failed and was undone.
    """
    if not len(domain.rows):
        return None
    loop = TaskLoop(session, sub_job, domain, ErrorCache(cache_errors))
    while tasks:
        if loop.step(tasks.pop()):
            break
    return loop.result()


class TaskLoop:
    """Goes once over the tasks of a group, and places each on the best node that is left.

    A task without a node leaves its reasons, and ends the pass unless the group could start without it. `occupied`: the
    HyperNode that the group occupies as it grows.
    """

    def __init__(self, session: Session, sub_job: SubJob, domain: Domain, cache: ErrorCache) -> None:
        self._session = session
        self._sub_job = sub_job
        self._job = sub_job.job
        self._queue = session.queue_of(sub_job.job)
        self._cache = cache
        self._everywhere = domain.name == TOP
        self._domain = domain
        self._statement = session.statement()
        self._occupied = sub_job.allocated_hyper_node
        self._no_room_for: PodTemplate | None = None  # the queue has none for it, until something is placed

    def step(self, task: Task) -> bool:
        """Try one task. True: enough, the rest may wait."""
        session, fit = self._session, self._session.fit
        # The order of these checks decides which reason a pending task shows (allocateResourcesForTasks).
        if not self._may_grow(task):
            session.trail.task_ended(task, Ending.QUEUE_HAS_NO_ROOM)
            return False
        if task.gated:
            session.trail.task_ended(task, Ending.GATED)
            return False
        if fit.role_has_failed(self._job, self._sub_job, task):
            text = f"Task {task.name} with role spec {task.role} has already predicated failed, skip"
            fit.record(self._job, self._sub_job, task, FitErrors(session.reasons, text=text))
            session.trail.task_ended(task, Ending.ROLE_FAILED)
            return False
        node = self._find(task)
        if node == NO_NODE:
            session.trail.task_ended(task, Ending.NO_NODE, "" if self._everywhere else self._domain.name)
            return not fit.worth_continuing(self._job, self._sub_job)
        # Volcano goes on with the next task and records no error.
        if node == UNSCORED:
            session.trail.task_ended(task, Ending.NO_NODE)
            return False
        if not self._place(task, node):
            session.trail.task_ended(task, Ending.PLACEMENT_REFUSED, session.objection, node)
            return False
        if self._sub_job.network_topology is not None:
            self._occupied = session.topology.after(task, node, self._occupied)
        return session.sub_job_ready(self._sub_job)

    def _may_grow(self, task: Task) -> bool:
        """Return whether the queue has room for the task; an equal task gets the last answer."""
        points, template = self._session.points, task.template
        if template is self._no_room_for:
            return False
        allowed = points.allocatable(self._queue, task)
        if not allowed and not template.resource_claims and not points.unforeseeable:
            self._no_room_for = template
        return allowed

    def result(self) -> Statement | None:
        """Return the statement when the group is ready or pipelined; otherwise undo all and return None."""
        session = self._session
        if session.sub_job_ready(self._sub_job) or session.sub_job_pipelined(self._sub_job):
            return self._statement
        self._statement.discard()
        return None

    def _find(self, task: Task) -> int:
        """Return the best node's row; NO_NODE after recording the reason; UNSCORED."""
        session = self._session
        try:
            search = session.search_for(task)
        except FitFailure as failure:
            # Volcano names the HyperNode of what the filters say, not of what comes before them.
            names = NAMED in session.config.pumice.fix
            self._record(task, session.fit.everywhere(failure.reason).codes, names=names)
            return NO_NODE
        if task.nominated:
            nominated = self._nominated(search, task)
            if nominated != NO_NODE:
                session.trail.looked_at_one(task, nominated)
                return nominated  # no other node was looked at: the error cache learns nothing of them
        search.refresh(self._cache)
        heading, before = session.topology.heading, session.topology.heading.get(task.row, "")
        if self._sub_job.network_topology is not None:
            heading[task.row] = self._occupied
        node, codes = search.choose() if self._everywhere else search.choose_within(self._domain.rows)
        if node == NO_NODE:
            if search.filters.is_asking or search.scoring.may_fail:
                inside = codes if self._everywhere else codes[self._domain.rows]
                if not inside.all():
                    return UNSCORED
            self._record(task, codes)
            # Volcano notes the HyperNode once a node is found: a later action scores a task that found none without it.
            if HEADED not in session.config.pumice.fix:
                heading[task.row] = before
        return node

    def _record(self, task: Task, codes: IntArray | None, *, names: bool = True) -> None:
        assert codes is not None
        if self._everywhere:
            errors = self._session.fit.found(codes)
        else:
            inside = np.zeros_like(codes)
            inside[self._domain.rows] = codes[self._domain.rows]
            errors = FitErrors(self._session.reasons, inside, hyper_node=self._domain.name if names else "")
        self._session.fit.record(self._job, self._sub_job, task, errors)

    def _nominated(self, search: NodeSearch, task: Task) -> int:
        """Return the row of the node that evictions of an earlier cycle made room on: it is tried alone, before all
        others.
        """
        session = self._session
        row = session.nodes.row.get(session.nominated_node(task), NO_NODE)
        if row == NO_NODE or not (self._everywhere or row in self._domain.rows):
            return NO_NODE
        if not session.nodes.fits_future(row, task):
            return NO_NODE
        session.carry.start = 0  # looking at a list of one node starts the next search at the front
        return NO_NODE if self._cache.remembers(task.role, row) or search.code_of(row) else row

    def _place(self, task: Task, node: int) -> bool:
        """Allocate what fits into idle room, promise what fits into room to come."""
        self._no_room_for, self._session.objection = None, ""
        if self._session.nodes.fits_idle(node, task):
            self._session.copies.act_as_held(task)
            return self._statement.allocate(task, node)
        if self._session.nodes.fits_future(node, task):
            self._session.copies.act_as_held(task)
            return self._statement.pipeline(task, node, evicted=False)
        return False
