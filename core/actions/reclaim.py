# SPDX-License-Identifier: Apache-2.0
"""reclaim: make room for starving jobs of queues below their deserved share by evicting from other queues.

Source: Volcano `actions/reclaim` (reference section 1.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.actions.victims.candidates import CandidateNodes, InVain, worth_trying
from pumice.core.actions.victims.on_node import (
    NEVER,
    add_request,
    asked,
    available,
    end_in_vain,
    fits,
    make_room,
    reclaimable,
    room_ending,
)
from pumice.core.actions.victims.starving import pending_tasks, starving_jobs
from pumice.core.session.action_arguments import caches_errors
from pumice.core.session.reasons import FitFailure
from pumice.core.session.trail.records import Ending
from pumice.core.session.victim_order import victim_queue

if TYPE_CHECKING:
    from pumice.core.actions.victims.on_node import BatchFilter
    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.points.nodes import RowArray
    from pumice.core.session.session import Session
    from pumice.core.session.statement import Statement
    from pumice.core.state.jobs import Job

NAME = "reclaim"
LEAVES = "reclaim-uses-what-leaves"


def execute(session: Session) -> None:
    """Reclaim queue by queue; a queue's first turn takes all its jobs, even if it becomes overused meanwhile."""
    reclaim = Reclaim(session)
    # Every queue with a valid job takes part, and jobs with a topology do, too (reclaim.go).
    starving = starving_jobs(session, every_queue=True)
    while len(starving.queues):
        queue = starving.queues.pop()
        if session.points.overused(queue):
            session.trail.queue_ended(queue.name, Ending.QUEUE_OVERUSED)
            continue
        jobs = starving.jobs.get(queue.name)
        while jobs:
            reclaim.for_job(queue, jobs.pop())
            # As in reclaim.go, once for each job that is left: the extra turns find an empty queue.
            if len(jobs):
                starving.queues.push(queue)


class Reclaim:
    """One execution."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._cache_errors = caches_errors(session, NAME)
        self._in_vain = InVain(session, tells_jobs_apart=session.points.tells_reclaimers_apart)

    def for_job(self, queue: Queue, job: Job) -> None:
        """Reclaim for the job's tasks in order; the evictions are kept only if the job can then run."""
        session = self._session
        statement, tasks = session.statement(), pending_tasks(session, job)
        while session.points.job_starving(job) and len(tasks):
            task = tasks.pop()
            if task.template.preemption_policy == NEVER:
                session.trail.task_ended(task, Ending.NEVER_PREEMPTS)
            elif not session.points.preemptive(queue, [task]):
                session.trail.task_ended(task, Ending.MAY_NOT_TAKE)
            else:
                self._for_task(statement, task)
        if session.job_pipelined(job):
            statement.commit()
            session.trail.job_ended(job, Ending.COMMITTED)
        else:
            statement.discard()
            session.trail.job_ended(job, Ending.DISCARDED)

    def _for_task(self, statement: Statement, task: Task) -> None:
        """Take the first node, unscored, on which evictions can make room."""
        session = self._session
        try:
            search = session.search_for(task, room=False)
        except FitFailure:
            return
        before = len(statement)
        # An error cache for this task alone, as in reclaim.go.
        for nodes in CandidateNodes(session, cache_errors=self._cache_errors).find(task, search):
            attempt = self._in_vain.attempt(task, search, nodes)
            if self._in_vain.foresees(attempt):
                session.trail.task_ended(task, Ending.AS_BEFORE)
                continue
            if self._on_nodes(statement, task, nodes):
                session.trail.task_ended(task, room_ending(statement, before))
                return
            self._in_vain.note(attempt)
        session.trail.task_ended(task, Ending.NO_VICTIMS)

    def _on_nodes(self, statement: Statement, task: Task, nodes: RowArray) -> bool:
        session, accepts = self._session, reclaimable(self._session, task)
        with_tasks = LEAVES not in session.config.pumice.fix
        return any(
            self._on_node(statement, task, int(nodes[i]), accepts)
            for i in worth_trying(session, task, nodes, accepts, session.points.reclaimable, with_tasks=with_tasks)
        )

    def _on_node(self, statement: Statement, task: Task, node: int, accepts: BatchFilter) -> bool:
        session = self._session
        candidates = asked(session, (node,), accepts)
        if not len(candidates.rows) and not _waits_for_leaving(session, task, node):
            session.trail.task_ended(task, Ending.NO_CANDIDATES_THERE, node=node)
            return False
        victims = session.points.reclaimable(task, candidates.tasks(), candidates)
        if not make_room(session, task, node, victims):
            session.trail.task_ended(task, Ending.TOO_LITTLE, node=node)
            return False
        room, waiting, trial = (
            available(session, task, node, ()),
            victim_queue(session, victims, task),
            session.statement(),
        )
        session.objection = ""
        # Neither the queue nor the filters are asked again after evictions (reclaim.go).
        while not fits(task, room) and len(waiting):
            victim = waiting.pop()
            trial.evict(victim, NAME, task.key)
            add_request(room, victim)
        has_room = fits(task, room)
        if has_room and trial.pipeline(task, node, evicted=len(trial) > 0):
            statement.merge(trial)
            return True
        self._in_vain.took_back(trial, placed=has_room)
        trial.discard()
        end_in_vain(session, task, node)
        return False


def _waits_for_leaving(session: Session, task: Task, node: int) -> bool:
    """Return whether the node will have room once terminating pods have gone (fix). Volcano passes over a node without
    candidates before it looks at releasing amounts (reclaim.go, reclaimForTask). Idle room is left to allocate, which
    asks the queues.
    """
    if LEAVES not in session.config.pumice.fix:
        return False
    idle = session.nodes.idle_at
    return not fits(task, {dimension: float(idle[dimension][node]) for dimension, _ in task.template.items})
