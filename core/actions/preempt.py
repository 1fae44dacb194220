# SPDX-License-Identifier: Apache-2.0
"""preempt: make room for starving jobs by evicting less important tasks of the same queue.

First between jobs, then within each job. Source: Volcano `actions/preempt` (reference section 1.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.config.known import CANDIDATES_LEAST, CANDIDATES_MOST, CANDIDATES_PERCENT, TOPOLOGY_AWARE
from pumice.core.actions.dry_runs import DryRun, drive
from pumice.core.actions.victims.candidates import CandidateNodes, InVain, worth_trying
from pumice.core.actions.victims.on_node import NEVER, asked, end_in_vain, is_eligible, make_room, movable, room_ending
from pumice.core.actions.victims.starving import pending_tasks, starving_jobs
from pumice.core.session.action_arguments import argument_of, caches_errors
from pumice.core.session.reasons import FitFailure
from pumice.core.session.trail.records import Ending
from pumice.core.session.victim_order import victim_queue

if TYPE_CHECKING:
    from collections.abc import Generator

    from pumice.core.actions.dry_runs import Candidate, Steps
    from pumice.core.actions.victims.on_node import BatchFilter
    from pumice.core.objects.pod import Task
    from pumice.core.session.heap import PopSource, PriorityQueue
    from pumice.core.session.points.nodes import RowArray
    from pumice.core.session.search.node_search import NodeSearch
    from pumice.core.session.session import Session
    from pumice.core.session.statement import Statement
    from pumice.core.state.jobs import Job

    Answer = Generator[DryRun, Candidate | None, bool]

NAME = "preempt"


def execute(session: Session) -> None:
    """Preempt queue by queue: between its jobs, then within each job."""
    drive(steps(session))


def steps(session: Session) -> Steps:
    """Execute, and yield every dry run: the driver sends the findings back, wherever it computes them."""
    return Preempt(session).run()


class Preempt:
    """Runs preempt once; its error cache lives as long as this object.

    Between jobs the victims of all tasks of a job are one statement: they go when the job can start with the room, or
    none of them does. Within a job each task stands for itself.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        cache_errors = caches_errors(session, NAME)
        self._candidates = CandidateNodes(session, cache_errors=cache_errors)
        self._in_vain = InVain(session)
        self._pushes_once = "preempt-pushes-once" in session.config.pumice.fix
        self._rechecks = "preempt-rechecks-predicates" in session.config.pumice.fix
        self._topology_aware = argument_of(session, NAME, TOPOLOGY_AWARE)
        self._percentage = argument_of(session, NAME, CANDIDATES_PERCENT)
        self._least = argument_of(session, NAME, CANDIDATES_LEAST)
        self._most = argument_of(session, NAME, CANDIDATES_MOST)

    def run(self) -> Steps:
        """Run the whole action, and yield its dry runs."""
        session = self._session
        # preempt.go leaves out jobs with a network topology; gangpreempt takes them.
        starving = starving_jobs(session, every_queue=False, accepts=lambda job: not session.topology.is_asked_for(job))
        # Made once: a job that is pushed back goes on with the tasks it has left.
        tasks = {job.row: pending_tasks(session, job) for jobs in starving.found.values() for job in jobs}
        while len(starving.queues):
            queue = starving.queues.pop()
            jobs = starving.jobs[queue.name]
            while len(jobs):
                yield from self._between_jobs(jobs, tasks)
            for job in starving.found[queue.name]:
                yield from self._within(job)

    def _between_jobs(self, jobs: PriorityQueue[Job], tasks: dict[int, PopSource[Task]]) -> Steps:
        """Let the next job take from others; the evictions are kept only if the job can then run."""
        session, job = self._session, jobs.pop()
        statement, assigned = session.statement(), False
        while session.points.job_starving(job) and len(tasks[job.row]):
            assigned = yield from self._preempt(statement, tasks[job.row].pop(), own_job=False)
        if not session.job_pipelined(job):
            statement.discard()
            session.trail.job_ended(job, Ending.DISCARDED)
            return
        statement.commit()
        session.trail.job_ended(job, Ending.COMMITTED)
        # v1.15.1 pushes the job back when its last preemption worked; later releases never do.
        if assigned and not self._pushes_once:
            jobs.push(job)

    def _within(self, job: Job) -> Steps:
        """Let the job's more important tasks take from its others, each by itself, until one fails."""
        # No question whether the job starves: the second loop of preempt.go asks none.
        tasks = pending_tasks(self._session, job)
        while len(tasks):
            statement = self._session.statement()
            if not (yield from self._preempt(statement, tasks.pop(), own_job=True)):
                statement.discard()
                return
            statement.commit()

    def _preempt(self, statement: Statement, task: Task, *, own_job: bool) -> Answer:
        """Evict for one task and pipeline it. False when nothing has changed."""
        session = self._session
        if not is_eligible(session, task):
            never = task.template.preemption_policy == NEVER
            session.trail.task_ended(task, Ending.NEVER_PREEMPTS if never else Ending.ROOM_IS_MADE)
            return False
        try:
            search = session.search_for(task, room=False)
        except FitFailure:
            return False
        before = len(statement)
        for nodes in self._candidates.find(task, search):
            if self._topology_aware:
                best = yield DryRun(session, task, nodes, self.wanted(len(nodes)), own_job=own_job)
                placed = self._on_least_loss(statement, task, best)
            else:
                placed = self._on_scored_nodes(statement, task, search, nodes, own_job=own_job)
            if placed:
                session.trail.task_ended(task, room_ending(statement, before))
                return True
        session.trail.task_ended(task, Ending.NO_VICTIMS)
        return False

    def _on_least_loss(self, statement: Statement, task: Task, best: Candidate | None) -> bool:
        """Evict on the node that the dry run found best (topologyAwarePreempt)."""
        if best is None:
            return False
        session = self._session
        trial, score = session.statement(), -float(best.victims[0].pod_priority or 0)
        for victim in best.victims:
            trial.evict(victim, NAME, task.key, score)
        session.objection = ""
        if not trial.pipeline(task, best.node, evicted=True):
            trial.discard()
            end_in_vain(session, task, best.node)
            return False
        statement.merge(trial)
        return True

    def wanted(self, nodes: int) -> int:
        """Return how many candidates are enough among so many nodes (calculateNumCandidates)."""
        return min(max(nodes * self._percentage // 100, self._least), self._most, nodes)

    def _on_scored_nodes(
        self, statement: Statement, task: Task, search: NodeSearch, nodes: RowArray, *, own_job: bool
    ) -> bool:
        """Try node by node, best score first, until one works out (normalPreempt)."""
        session, attempt = self._session, self._in_vain.attempt(task, search, nodes, own_job=own_job)
        if self._in_vain.foresees(attempt):
            session.trail.task_ended(task, Ending.AS_BEFORE)
            return False
        totals = search.scoring.totals(nodes)
        if len(totals) and totals[0] == -np.inf:  # no plugin could score them
            return False
        # Stable: equal scores keep the order of the candidates, as in Volcano's SortNodes.
        order = np.argsort(-totals, kind="stable")
        nodes, totals = nodes[order], totals[order]
        accepts = movable(session, task, own_job=own_job)
        for i in worth_trying(session, task, nodes, accepts, session.points.preemptable, with_tasks=False):
            if self._on_node(statement, task, search, int(nodes[i]), float(totals[i]), accepts):
                return True
        self._in_vain.note(attempt)
        return False

    def _on_node(
        self,
        statement: Statement,
        task: Task,
        search: NodeSearch,
        node: int,
        score: float,
        accepts: BatchFilter,
    ) -> bool:
        session = self._session
        candidates = asked(session, (node,), accepts)
        victims = session.points.preemptable(task, candidates.tasks(), candidates)
        if not make_room(session, task, node, victims):
            session.trail.task_ended(task, Ending.TOO_LITTLE, node=node)
            return False
        counts_best_effort = "best-effort-victims-count" in session.config.pumice.fix  # else they do not count
        trial, waiting, freed = session.statement(), victim_queue(session, victims, task), False
        session.objection = ""
        # Tested before every eviction, the first included, as in preempt.go.
        while not self._has_room(task, search, node) and len(waiting):
            victim = waiting.pop()
            trial.evict(victim, NAME, task.key, score)
            freed = freed or counts_best_effort or not victim.template.best_effort
        has_room = self._has_room(task, search, node)
        if has_room and trial.pipeline(task, node, evicted=freed):
            statement.merge(trial)
            return True
        self._in_vain.took_back(trial, placed=has_room)
        trial.discard()
        end_in_vain(session, task, node)
        return False

    def _has_room(self, task: Task, search: NodeSearch, node: int) -> bool:
        """Return whether the queue allows the task and the node has the room; the filters are not asked again (the fix
        asks them).
        """
        session = self._session
        job = session.job_of(task)
        assert job is not None
        if not session.points.allocatable(session.queue_of(job), task):
            return False
        return session.nodes.fits_future(node, task) and not (self._rechecks and search.filter_code(node))
