# SPDX-License-Identifier: Apache-2.0
"""Room for a whole gang: in which domain, by whose eviction, and where each task would go.

Shared by gangpreempt and gangreclaim, which differ in their candidates. Source: Volcano `actions/gangpreempt`,
`actions/gangreclaim`, `actions/utils` (reference section 1.8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pumice.config.known import MOST_DOMAINS, WHOLE_BUNDLES
from pumice.core.actions.gangs.bundles import Bundle, Cost, bundles_of, may_lose_tasks, requests
from pumice.core.actions.placing.worksheet import organize, ungated
from pumice.core.actions.victims.candidates import CandidateNodes
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.action_arguments import argument_of, caches_errors
from pumice.core.session.reasons import FitFailure
from pumice.core.session.statement import save
from pumice.core.session.trail.records import Ending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pumice.core.actions.gangs.bundles import Amounts
    from pumice.core.objects.pod import Task
    from pumice.core.session.heap import PopSource
    from pumice.core.session.jobs import SubJob
    from pumice.core.session.points.nodes import BoolArray, RowArray
    from pumice.core.session.session import Session
    from pumice.core.session.statement import Operation, Statement
    from pumice.core.state.dimensions import FloatArray
    from pumice.core.state.hypernodes import Domain
    from pumice.core.state.jobs import Job

# --- Trials for gangs
# Source: Volcano `actions/utils/simulate.go` (BuildNominationPlanInDomain).


class GangTrial:
    """A trial of one domain. `victims`: the tasks to evict, and the score that chose them.

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
        """Return whether the job is whole at the end; all operations are undone either way."""
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
        """Place group by group until the job is whole; of a job that already runs only the first group."""
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
        """Return all of the group's tasks on the domain's nodes, or nothing."""
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
        """Return the best node, nodes with idle room first, then nodes with future room; -1 without one."""
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
    """Return where the task fits, over all nodes."""
    fits = np.ones(columns.shape[1], dtype=np.bool_)
    for dimension, value in task.template.items:
        fits &= value - columns[dimension] < MIN_RESOURCE
    return fits


FEWEST = "gangs-evict-no-more"


@dataclass(frozen=True, slots=True)
class EvictionForGang:
    """The facts about an eviction for a gang that plugins receive. `kind`: the action."""

    kind: str
    job: Job
    domain: str


class GangEviction:
    """Runs gangpreempt or gangreclaim once: looks for victims in one domain after the other, until a whole gang fits.

    Victims are added bundle by bundle, and each set is tried with the gang itself: nothing is evicted that a trial has
    not shown to suffice. `accepts(job, task, victim_job)`: whether the task may be asked to go for the job; `order(job,
    bundles, need)`: who is asked first.
    """

    def __init__(
        self,
        session: Session,
        name: str,
        accepts: Callable[[Job, Task, Job], bool],
        order: Callable[[Job, list[Bundle], Amounts], list[Bundle]],
    ) -> None:
        self._session = session
        self._name = name
        self._accepts = accepts
        self._order = order
        most = argument_of(session, name, MOST_DOMAINS)
        # 0 or less means the default, as in Volcano.
        self._most = most if most > 0 else MOST_DOMAINS.default
        self._takes_whole = argument_of(session, name, WHOLE_BUNDLES)
        # Volcano reads this flag from the arguments of allocate.
        self._cache_errors = caches_errors(session, "allocate")

    def pending(self, job: Job) -> list[Task]:
        """Return the tasks that need room: all waiting tasks; of a job that already runs, those of its first group."""
        session = self._session
        worksheet = organize(session, job, ungated)
        groups: list[SubJob] = []
        while len(worksheet.sub_jobs):
            groups.append(worksheet.sub_jobs.pop())
        if session.job_ready(job):
            del groups[1:]
        tasks: list[Task] = []
        for group in groups:
            waiting = worksheet.tasks[group.uid]
            while len(waiting):
                tasks.append(waiting.pop())
        return tasks

    def run(self, job: Job, pending: list[Task]) -> None:
        """Evict for the job and promise it the room, if that makes it whole."""
        session, statement = self._session, self._session.statement()
        need = requests(pending)
        placed: dict[str, str] = {}
        for domain in self._domains(job) if pending else ():
            found = self._in_domain(job, domain, need)
            if found is not None and statement.recover(found.operations):
                placed = found.domains
                break
        if not session.job_pipelined(job):
            statement.discard()
            session.trail.job_ended(job, Ending.DISCARDED if pending else Ending.NOTHING_TO_PLACE)
            return
        statement.commit()
        session.trail.job_ended(job, Ending.COMMITTED, ", ".join(sorted(set(placed.values()))))
        if placed:
            session.nominations.set(job, placed)

    def _domains(self, job: Job) -> list[Domain]:
        """Return the first few domains that the topology suggests; the whole cluster where it suggests none."""
        topology = self._session.topology
        gradients = self._session.points.hyper_node_gradient_for_job(job, topology.tree.top, "evict")
        found = list({domain.name: domain for gradient in gradients for domain in gradient}.values())
        if not found and not topology.is_hard(job):
            return [topology.tree.top]
        if not found:
            self._session.trail.job_ended(job, Ending.NO_DOMAIN)
        return found[: self._most]

    def _in_domain(self, job: Job, domain: Domain, need: Amounts) -> GangTrial | None:
        """Ask for one bundle after the other until the need could be met and a trial succeeds."""
        room = self._room(domain, need)
        victims: list[tuple[Task, float]] = []
        trial: GangTrial | None = None
        bundles, asked = self._bundles(job, domain, need)
        for bundle in bundles:
            score = bundle.score(need)
            for some in self._parts(bundle):
                victims += [(task, score) for task in some]
                for dimension, value in requests(some).items():
                    if dimension in room:
                        room[dimension] += value
                if _short(need, room):
                    continue
                trial = GangTrial(self._session, job, domain, victims, self._name, cache_errors=self._cache_errors)
                if trial.run():
                    return trial
        if trial is not None:
            self._session.trail.job_ended(job, Ending.TRIAL_FAILED, trial.trouble, domain.name)
        elif bundles:
            names = ", ".join(self._session.dims.names[dimension] for dimension in _short(need, room))
            self._session.trail.job_ended(job, Ending.TOO_LITTLE, f"short of {names}", domain.name)
        else:
            self._session.trail.job_ended(job, asked, "", domain.name)
        return None

    def _parts(self, bundle: Bundle) -> Iterable[Sequence[Task]]:
        """Return the steps in which a bundle is added to the victims: the whole bundle, as in Volcano (gangpreempt.go,
        preemptJobInDomains), or under the fix one pod after the other of a job's surplus.
        """
        one_by_one = FEWEST in self._session.config.pumice.fix and bundle.cost is Cost.SAFE
        return ((task,) for task in bundle.tasks) if one_by_one else (bundle.tasks,)

    def _room(self, domain: Domain, need: Amounts) -> Amounts:
        """Return idle and releasing amounts, summed over the domain, in the dimensions that are needed."""
        nodes, rows = self._session.nodes, domain.rows
        return {d: float(np.sum(nodes.idle[d][rows]) + np.sum(nodes.releasing[d][rows])) for d in need}

    def _bundles(self, job: Job, domain: Domain, need: Amounts) -> tuple[list[Bundle], Ending]:
        """Return the bundles that the plugins agree to, in the order of eviction, or why there are none."""
        bundles = self._order(job, self._candidates(job, domain), need)
        tasks = [task for bundle in bundles for task in bundle.tasks]
        if not tasks:
            return [], Ending.NO_CANDIDATES_THERE
        context = EvictionForGang(self._name, job, domain.name)
        allowed = {t.uid for t in self._session.points.unified_evictable(context, tasks)}
        left = [approved for bundle in bundles if (approved := bundle.approved(allowed)) is not None]
        # Ordered again: a bundle that lost tasks has another gain.
        ordered = self._order(job, left, need)
        kept = [bundle for bundle in ordered if self._takes_whole or bundle.cost is Cost.SAFE]
        return kept, Ending.WOULD_BREAK if ordered else Ending.NO_VICTIMS

    def _candidates(self, job: Job, domain: Domain) -> list[Bundle]:
        """Return the tasks in the domain that may be evicted, bundled by job, jobs by name."""
        session = self._session
        found: dict[str, tuple[Job, list[Task]]] = {}
        for node in domain.rows.tolist():
            for task in session.nodes.tasks_on(node):
                other = session.job_of(task)
                if other is None or not task.preemptable or not may_lose_tasks(other.pod_group):
                    continue
                if self._accepts(job, task, other):
                    found.setdefault(other.key, (other, []))[1].append(task)
        return [bundle for key in sorted(found) for bundle in bundles_of(session, *found[key])]


def _short(need: Amounts, room: Amounts) -> list[int]:
    """Return the dimensions that are short."""
    return [dimension for dimension, value in need.items() if value - room[dimension] >= MIN_RESOURCE]
