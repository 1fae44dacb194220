# SPDX-License-Identifier: Apache-2.0
"""A job over performance domains: try each, keep the best, and place it there for real.

A trial leaves no trace but its fit errors: what it placed is saved as a value and undone. Domains come in gradients
(nearest first), and the first gradient with a solution wins; within it the highest score, then the lowest name. Source:
Volcano `allocateForJob`, `allocateForSubJob`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pumice.core.actions.placing.nomination import allocate_as_nominated
from pumice.core.actions.placing.task_loop import allocate_tasks
from pumice.core.session.statement import ONCE, Operation, save
from pumice.core.session.trail.records import Ending

if TYPE_CHECKING:
    from pumice.core.actions.placing.worksheet import Worksheet
    from pumice.core.session.heap import PopSource
    from pumice.core.session.jobs import SubJob
    from pumice.core.session.session import Session
    from pumice.core.session.statement import Statement
    from pumice.core.state.hypernodes import Domain
    from pumice.core.state.jobs import Job


LISTING: Final = frozenset(("allocate", "gangpreempt", "gangreclaim"))
"""The actions that go by what groups list as pending."""


@dataclass(slots=True)
class Decisions:
    """The places chosen for jobs and groups, by the domain tried for the job; committed places become the domains that
    they occupy.
    """

    session: Session
    _job: dict[int, str] = field(default_factory=dict[int, str])
    _sub_jobs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict[tuple[int, str], "dict[str, str]"])

    def job(self, job: Job, domain: str) -> None:
        """Note that the job goes to that domain."""
        self._job[job.row] = domain

    def sub_job(self, sub_job: SubJob, tried: str, domain: str) -> None:
        """Note that a group goes to that domain while the job is tried in `tried`."""
        self._sub_jobs.setdefault((sub_job.job.row, tried), {})[sub_job.uid] = domain

    def apply(self, job: Job) -> None:
        """Note that the job's statement was committed."""
        topology, domain = self.session.topology, self._job.get(job.row)
        if not domain:
            return
        topology.occupied[job.row] = topology.tree.lowest_common(topology.occupied.get(job.row, ""), domain)
        for uid, name in self._sub_jobs.get((job.row, domain), {}).items():
            sub_job = self.session.sub_jobs(job)[uid]
            sub_job.allocated_hyper_node = topology.tree.lowest_common(sub_job.allocated_hyper_node, name)
            sub_job.nominated_hyper_node = ""


@dataclass(slots=True)
class DomainTrial:
    """A solution found in one domain: the placed tasks, the tasks left to place, and its score."""

    operations: list[Operation]
    left: Worksheet
    score: float


def _replays_show(session: Session) -> bool:
    """Return whether a later action lists the tasks of groups, and so sees which were placed by a replay (see
    core/session/statement.py).
    """
    actions = session.config.actions
    later = actions[actions.index("allocate") + 1 :] if "allocate" in actions else ()
    return ONCE not in session.config.pumice.fix and not LISTING.isdisjoint(later)


class DomainAllocator:
    """Places one job domain by domain.

    Each domain is tried with the job's real tasks and then left as it was; the trial remains as a list of operations.
    The domain that wins is placed by replaying its list, not by a second search.
    """

    def __init__(self, session: Session, decisions: Decisions, *, cache_errors: bool) -> None:
        self._session = session
        self._decisions = decisions
        self._cache_errors = cache_errors
        self._replays_show = _replays_show(session)

    # --- jobs
    # -----------------------------------------------------------------------------------------------------------

    def allocate(self, job: Job, worksheet: Worksheet) -> Statement | None:
        """Place the job in the best domain of the first gradient that has a solution, and return it; None when no
        gradient has one.
        """
        if worksheet.empty:
            return None
        before = {uid: self._session.sub_jobs(job)[uid].allocated_hyper_node for uid in worksheet.tasks}
        session = self._session
        for gradient in session.points.hyper_node_gradient_for_job(job, session.topology.tree.top):
            if self._is_simple(job, gradient):
                statement = self._first_by_promise(job, worksheet, gradient)
                if statement is not None:
                    return statement
                continue
            trials = {domain.name: trial for domain in gradient if (trial := self._try(job, worksheet, domain, before))}
            if trials:
                return self._settle(job, worksheet, trials)
        return None

    def _settle(self, job: Job, worksheet: Worksheet, trials: dict[str, DomainTrial]) -> Statement | None:
        # Of equal scores the lowest name wins; Volcano walks a map, so its choice among them is random.
        best = max(sorted(trials), key=lambda name: trials[name].score)
        statement = self._session.statement()
        if not statement.recover(trials[best].operations):
            return None
        worksheet.take_over(trials[best].left)
        self._decisions.job(job, best)
        return statement

    # --- gangs that go whole into one lowest domain
    # ---------------------------------------------------------------------

    def _is_simple(self, job: Job, gradient: Sequence[Domain]) -> bool:
        """Return whether the job is one group, all of whose tasks are needed, over lowest domains: then a domain's
        score does not depend on the trial.
        """
        return (
            not self._replays_show
            and not self._session.has_sub_job_policy(job)
            and self._session.jobs.min_member[job.row] == len(job.tasks)
            and not self._session.sub_jobs(job)[job.key].nominated_hyper_node
            and not any(domain.children for domain in gradient)
            and not self._session.searches.samples
        )

    def _first_by_promise(self, job: Job, worksheet: Worksheet, gradient: Sequence[Domain]) -> Statement | None:
        """Try the domains from the highest score down: the first that works is the best, and its trial is kept."""
        session, sub_job = self._session, self._session.sub_jobs(job)[job.key]
        scores = session.points.hyper_node_order(sub_job, [domain.name for domain in gradient], alone=True)
        order = sorted(gradient, key=lambda domain: (-scores[domain.name], domain.name))
        for domain in order:
            statement, left = self._go_whole(sub_job, worksheet, domain)
            if statement is not None:
                worksheet.take_over(left)
                self._decisions.job(job, domain.name)
                return statement
            session.trail.job_ended(job, Ending.NOT_IN_DOMAIN, domain.name)
        if order and order[-1] is not gradient[-1]:
            self._go_whole(sub_job, worksheet, gradient[-1])  # the reasons that stay are those of the last in line
        return None

    def _go_whole(self, sub_job: SubJob, worksheet: Worksheet, domain: Domain) -> tuple[Statement | None, Worksheet]:
        session, job = self._session, sub_job.job
        session.fit.reset(job)
        left = worksheet.clone()
        left.sub_jobs.pop()
        if not self._inside(sub_job, domain):
            return None, left
        statement = allocate_tasks(session, sub_job, left.tasks[sub_job.uid], domain, cache_errors=self._cache_errors)
        if statement is None or not statement.operations:
            return None, left
        if not (session.job_ready(job) or session.job_pipelined(job)):
            statement.discard()
            return None, left
        if len(left.tasks[sub_job.uid]):
            left.sub_jobs.push(sub_job)  # without plugin gang a job is ready with a part of its tasks
        occupied = session.topology.tree.lowest_common(sub_job.allocated_hyper_node, domain.name)
        self._decisions.sub_job(sub_job, domain.name, occupied)
        return statement, left

    def _inside(self, sub_job: SubJob, domain: Domain) -> bool:
        """Return whether the group's own gradient inside the domain contains the domain itself."""
        gradients = self._session.points.hyper_node_gradient_for_sub_job(sub_job, domain)
        return any(domain in gradient for gradient in gradients)

    # --- trials
    # -----------------------------------------------------------------------------------------------------------

    def _try(self, job: Job, worksheet: Worksheet, domain: Domain, before: dict[str, str]) -> DomainTrial | None:
        session = self._session
        session.fit.reset(job)
        left = worksheet.clone()
        statements: list[Statement] = []
        score = 0.0
        while len(left.sub_jobs):
            sub_job = left.sub_jobs.pop()
            statement, gained = self._allocate_sub_job(sub_job, left, domain)
            if statement is None or not statement.operations:
                continue
            statements.append(statement)
            score += gained
            if len(left.tasks[sub_job.uid]):
                left.sub_jobs.push(sub_job)
            if session.job_ready(job):
                break
        # A trial writes the domains of groups; the next one must start from what was there.
        for uid, occupied in before.items():
            session.sub_jobs(job)[uid].allocated_hyper_node = occupied
        operations = save(*statements)
        if not operations:
            session.trail.job_ended(job, Ending.NOT_IN_DOMAIN, domain.name)
            return None
        works = session.job_ready(job) or session.job_pipelined(job)
        if not works:
            session.trail.job_ended(job, Ending.NOT_IN_DOMAIN, domain.name)
        for statement in statements:
            statement.discard()
        return DomainTrial(operations, left, score) if works else None

    # --- groups
    # -----------------------------------------------------------------------------------------------------------

    def _allocate_sub_job(self, sub_job: SubJob, worksheet: Worksheet, tried: Domain) -> tuple[Statement | None, float]:
        session, tasks = self._session, worksheet.tasks[sub_job.uid]
        if not len(tasks):
            return None, 0.0
        if sub_job.nominated_hyper_node:
            statement = allocate_as_nominated(session, sub_job, tasks, cache_errors=self._cache_errors)
            if statement is not None:
                self._decisions.sub_job(sub_job, tried.name, sub_job.allocated_hyper_node)
                return statement, 0.0
        for gradient in session.points.hyper_node_gradient_for_sub_job(sub_job, tried):
            trials = self._try_sub_job(sub_job, tasks, gradient)
            if trials:
                return self._settle_sub_job(sub_job, worksheet, tried, trials)
        return None, 0.0

    def _try_sub_job(
        self, sub_job: SubJob, tasks: PopSource[object], gradient: Sequence[Domain]
    ) -> dict[str, tuple[list[Operation], PopSource[object]]]:
        session = self._session
        trials: dict[str, tuple[list[Operation], PopSource[object]]] = {}
        for domain in gradient:
            session.fit.reset(sub_job.job, sub_job)
            left = tasks.clone()
            statement = allocate_tasks(session, sub_job, left, domain, cache_errors=self._cache_errors)  # type: ignore[arg-type]
            if statement is not None and statement.operations:
                trials[domain.name] = (save(statement), left)
                statement.discard()
        return trials

    def _settle_sub_job(
        self,
        sub_job: SubJob,
        worksheet: Worksheet,
        tried: Domain,
        trials: dict[str, tuple[list[Operation], PopSource[object]]],
    ) -> tuple[Statement | None, float]:
        session = self._session
        scores = session.points.hyper_node_order(sub_job, sorted(trials))
        best = max(sorted(trials), key=lambda name: scores[name])
        operations, left = trials[best]
        statement = session.statement()
        if not statement.recover(operations):
            return None, 0.0
        occupied = session.topology.tree.lowest_common(sub_job.allocated_hyper_node, best)
        sub_job.allocated_hyper_node = occupied
        worksheet.tasks[sub_job.uid] = left  # type: ignore[assignment]
        self._decisions.sub_job(sub_job, tried.name, occupied)
        return statement, scores[best]
