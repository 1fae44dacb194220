"""A dry run for a gang: these victims go, and its groups are promised nodes in a domain, one after the other.

Source: Volcano `actions/utils/simulate.go` (BuildNominationPlanInDomain).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.actions.placing.worksheet import organize, ungated
from pumice.core.actions.victims.candidates import CandidateNodes
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.reasons import FitFailure
from pumice.core.session.statement import save

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.actions.victims.candidates import BoolArray, RowArray
    from pumice.core.objects.pod import Task
    from pumice.core.session.heap import PopSource
    from pumice.core.session.session import Session
    from pumice.core.session.statement import Operation, Statement
    from pumice.core.session.subjobs import SubJob
    from pumice.core.state.columns import FloatArray
    from pumice.core.state.hypernodes import Domain
    from pumice.core.state.jobs import Job


class GangTrial:
    """`victims`: who goes, and the score that chose it.

    After a successful `run`: `operations` to do again, and `domains` by group; after another one `trouble`: what was in
    the way last. The session itself is as before.
    """

    def __init__(
        self,
        session: Session,
        job: Job,
        domain: Domain,
        victims: Sequence[tuple[Task, float]],
        reason: str,
        *,
        cache_errors: bool,
    ) -> None:
        self._session = session
        self._job = job
        self._domain = domain
        self._victims = tuple(victims)
        self._reason = reason
        self._cache_errors = cache_errors
        self.operations: list[Operation] = []
        self.domains: dict[str, str] = {}
        self.trouble = ""

    def run(self) -> bool:
        """Whether the job is whole in the end; all is undone either way."""
        session, chain = self._session, [self._session.statement()]
        for victim, score in self._victims:
            chain[0].evict(victim, self._reason, self._job.key, score)
        works = self._place_groups(chain)
        if works:
            self.operations = save(*chain)
        for statement in reversed(chain):
            statement.discard()
        session.searches.current = None
        return works

    def _place_groups(self, chain: list[Statement]) -> bool:
        """Group by group until the job is whole; of a job that runs already only the first group."""
        session, job = self._session, self._job
        was_ready, worksheet = session.job_ready(job), organize(self._session, self._job, ungated)
        while len(worksheet.sub_jobs):
            sub_job = worksheet.sub_jobs.pop()
            statement = self._place_group(sub_job, worksheet.tasks[sub_job.uid])
            if statement is None:
                return False
            chain.append(statement)
            if session.job_pipelined(job):
                return True
            if was_ready:
                break
        return False

    def _place_group(self, sub_job: SubJob, tasks: PopSource[Task]) -> Statement | None:
        topology = self._session.topology
        gradients = [[self._domain]]
        if topology.is_hard(self._job):
            gradients = self._session.points.hyper_node_gradient_for_sub_job(sub_job, self._domain, "evict")
        for domain in (domain for gradient in gradients for domain in gradient):
            statement = self._in_domain(sub_job, tasks.clone(), domain)
            if statement is not None:
                self.domains[sub_job.uid] = domain.name
                return statement
        return None

    def _in_domain(self, sub_job: SubJob, tasks: PopSource[Task], domain: Domain) -> Statement | None:
        """All of the group's tasks on the domain's nodes, or nothing."""
        session, statement = self._session, self._session.statement()
        candidates = CandidateNodes(session, cache_errors=self._cache_errors)
        placed = True
        while placed and len(tasks):
            task = tasks.pop()
            node = self._find(candidates, task, domain.rows)
            if node < 0:
                placed = False
                break
            session.copies.act_as_held(task)
            placed = statement.pipeline(task, node, evicted=bool(self._victims))
        whole = placed and statement.operations
        if whole and (session.sub_job_ready(sub_job) or session.sub_job_pipelined(sub_job)):
            return statement
        statement.discard()
        return None

    def _find(self, candidates: CandidateNodes, task: Task, rows: RowArray) -> int:
        """The best node, those with idle room first, then those with room to come; -1: none."""
        session = self._session
        if not session.points.allocatable(session.queue_of(self._job), task):
            self.trouble = f"its queue has no room for {task.key}"
            return -1
        self.trouble = f"no node for {task.key}"
        try:
            search = session.search_for(task, room=False)
        except FitFailure:
            return -1
        inside = np.zeros(session.nodes.count, dtype=np.bool_)
        inside[rows] = True
        lacking = ~_has_room(session.nodes.future, task)
        taken = candidates.feasible(task, search, inside, lacking)
        idle = _has_room(session.nodes.idle, task)
        for wanted in (taken & idle, taken & ~idle):
            for group in session.searches.by_shard(wanted):
                node = search.best_of(group)
                if node >= 0:
                    return node
        return -1


def _has_room(columns: FloatArray, task: Task) -> BoolArray:
    """Where the task fits, over all nodes."""
    fits = np.ones(columns.shape[1], dtype=np.bool_)
    for dimension, value in task.template.items:
        fits &= value - columns[dimension] < MIN_RESOURCE
    return fits
