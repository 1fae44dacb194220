# SPDX-License-Identifier: Apache-2.0
"""Candidate nodes of a preemptor: all nodes where eviction could help, as far as sampling goes, nodes of its own shard
first.

Source: Volcano `FilterOutUnschedulableAndUnresolvableNodesForTask`, `PredicateForPreemptAction`
(`framework/session.go`), `PredicateNodes`, `GetPredicatedNodeByShard` (`pkg/scheduler/util`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.core.actions.victims.on_node import asked
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.search.node_search import ErrorCache
from pumice.core.session.trail.records import Ending

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.core.actions.victims.on_node import BatchFilter
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import BoolArray, RowArray, TaskBatch
    from pumice.core.session.points.victims import TieredIntersection
    from pumice.core.session.search.node_search import NodeSearch
    from pumice.core.session.session import Session
    from pumice.core.session.statement import Statement

# --- Nodes worth a try, by columns

TRIED_FIRST = 2  # nodes that are tried before anything is computed for all of them
LOOKED_AT_FIRST, LOOKED_AT_MORE = 64, 4  # then so many in one batch, then so many times as many


def worth_trying(
    session: Session,
    task: Task,
    nodes: RowArray,
    accepts: BatchFilter,
    point: TieredIntersection[Task],
    *,
    with_tasks: bool,
) -> Iterator[int]:
    """Yield places in `nodes` that are worth a try, in order. `point`: where plugins are asked about the accepted
    candidates; `with_tasks`: only nodes with tasks.
    """
    yield from range(min(TRIED_FIRST, len(nodes)))
    first, size = TRIED_FIRST, LOOKED_AT_FIRST
    while first < len(nodes):
        some = nodes[first : first + size]
        batch = asked(session, some.tolist(), accepts)
        passes = _makes_room(session, task, some, batch, point)
        empty = np.bincount(batch.node, minlength=len(some)) == 0 if with_tasks else np.zeros(len(some), dtype=np.bool_)
        passes &= ~empty
        for place in np.flatnonzero(~passes).tolist() if session.trail.listens else ():
            ending = Ending.NO_CANDIDATES_THERE if empty[place] else Ending.TOO_LITTLE
            session.trail.task_ended(task, ending, node=int(some[place]))
        yield from (np.flatnonzero(passes) + first).tolist()
        first, size = first + size, size * LOOKED_AT_MORE


def _makes_room(
    session: Session, task: Task, nodes: RowArray, batch: TaskBatch, point: TieredIntersection[Task]
) -> BoolArray:
    """Return whether evicting all candidates makes room, node by node; where it does and plugins can answer by columns,
    whether the approved ones do.
    """
    passes = _fits(session, task, nodes, batch)
    if point.by_columns and np.count_nonzero(passes):
        batch = batch.only(passes[batch.node])
        passes &= _fits(session, task, nodes, batch.only(point.over(task, batch)))
    return passes


def _fits(session: Session, task: Task, nodes: RowArray, batch: TaskBatch) -> BoolArray:
    """Return whether the task has room where all tasks of the batch have gone. [len(nodes)]"""
    passes = np.ones(len(nodes), dtype=np.bool_)
    requests = batch.facts.requests[batch.facts.template[batch.rows]]
    for dimension, value in task.template.items:
        given = np.bincount(batch.node, weights=requests[:, dimension], minlength=len(nodes))
        # twice the tolerance: sums in another order may differ in the last bits
        passes &= value - (session.nodes.future[dimension][nodes] + given) < 2 * MIN_RESOURCE
    return passes


# --- Tries in vain
# Where one try found no victim and nothing has happened since, the next of its kind would find none either: the
# tasks of a gang are tried one after the other, and on a full cluster hundreds of jobs alike wait in each cycle.
# Without this `bench preemptFew`, in which some of the gangs come to nothing, takes 1.2 times as long, and 2.7 times
# where all of them do.


class Attempt(NamedTuple):
    """Everything that an attempt's outcome depends on, besides the state of the session: what plugins read of the task
    (the search stands for its template and for what filters and scorers read besides) and of its job, whose tasks may
    be evicted, and the candidate nodes. `job`: "" where all tasks of the job wait, so that it holds nothing and has no
    task to evict.
    """

    search: NodeSearch
    job: str
    queue: int
    job_priority: int
    priority: int
    pod_priority: int | None
    preemptable: bool
    revocable_zone: str
    own_job: bool
    nodes: bytes


class InVain:
    """Remembers the attempts that failed since something changed. Nothing is predicted where a user's plugin may tell
    any two tasks apart, or for tasks with claims of their own. Jobs are told apart (`tells_jobs_apart`) where a rule
    reads more of a waiting job than its queue and its priority, and while a trail listens: each job hears its own
    reasons.

    An attempt that evicts and takes it back leaves the session as it was, where every handler of a plugin takes back
    exactly what it did, unless NodeInfo lost a pod by it (`TakenBack`): then the next of its kind is tried as well.
    """

    def __init__(self, session: Session, *, tells_jobs_apart: bool = False) -> None:
        self._session = session
        self._tells_jobs_apart = tells_jobs_apart or session.trail.listens
        self._failed = set[Attempt]()
        self._known_at = self._began_at = -1, -1
        self._lost = 0
        self._leaves_traces = False

    def attempt(self, task: Task, search: NodeSearch, nodes: RowArray, *, own_job: bool = False) -> Attempt | None:
        """Return the attempt that is about to be made; None when it cannot equal another one."""
        session = self._session
        self._began_at, self._lost, self._leaves_traces = self._moment(), len(session.kube.touched), False
        if session.points.unforeseeable or task.template.resource_claims:
            return None
        job, columns = session.job_of(task), session.snapshot.jobs
        assert job is not None
        alike = session.jobs.all_wait(job) and not self._tells_jobs_apart
        return Attempt(
            search,
            "" if alike else task.job,
            int(columns.queue[job.row]),
            int(columns.priority[job.row]),
            task.priority,
            task.pod_priority,
            task.preemptable,
            task.revocable_zone,
            own_job,
            nodes.tobytes(),
        )

    def foresees(self, attempt: Attempt | None) -> bool:
        """Return whether this same attempt has failed already, and nothing has changed since."""
        return attempt is not None and self._known_at == self._began_at and attempt in self._failed

    def took_back(self, trial: Statement, *, placed: bool) -> None:
        """Note evictions of the attempt that are about to be taken back. `placed`: a handler refused the task's
        placement. That leaves traces, and so does a bound victim, which will be running.
        """
        self._leaves_traces |= placed or any(each.bound for each in trial.operations)

    def note(self, attempt: Attempt | None) -> None:
        """Note that the attempt failed."""
        if self._known_at != self._began_at:
            self._failed.clear()
        self._known_at = self._moment()
        if self._known_at != self._began_at and not self._is_restored():
            self._failed.clear()
        elif attempt is not None:
            self._failed.add(attempt)

    def _moment(self) -> tuple[int, int]:
        return self._session.jobs.generation, len(self._session.nodes.touched)

    def _is_restored(self) -> bool:
        """Return whether the evictions of the attempt, which were taken back, have left the session as it was."""
        session = self._session
        kept_pods = len(session.kube.touched) == self._lost
        return session.points.takes_back and kept_pods and not self._leaves_traces and not session.jobs.listings


NO_CACHE = ErrorCache(enabled=False)


class CandidateNodes:
    """Candidate nodes by task, under one life of Volcano's error cache.

    A node that was refused for a role of a job stays refused (never for tasks without a role). A plain Unschedulable
    refuses no node: evictions may cure it.
    """

    def __init__(self, session: Session, *, cache_errors: bool) -> None:
        self._session = session
        self._cache_errors = cache_errors
        self._refused: dict[tuple[str, str], BoolArray] = {}

    def find(self, task: Task, search: NodeSearch) -> list[RowArray]:
        """Return rows in name order: one group, or under soft sharding the shard's own nodes and then the others'."""
        return [np.flatnonzero(group) for group in self._session.searches.by_shard(self.feasible(task, search))]

    def feasible(
        self, task: Task, search: NodeSearch, inside: BoolArray | None = None, lacking: BoolArray | None = None
    ) -> BoolArray:
        """Return the mask of the chosen nodes: only those `inside`, and none that is `lacking`, when these are
        given.
        """
        session = self._session
        search.refresh(NO_CACHE)
        refused = session.reasons.are_terminal(search.codes)
        if lacking is not None:
            refused |= lacking
        remembered = self._refused.get((task.job, task.role)) if self._cache_errors and task.role else None
        if remembered is not None:
            refused |= remembered
        listed = self._listed(task)
        if inside is not None:
            listed = listed[inside[listed]] if len(listed) else np.flatnonzero(inside)
        taken, seen = self._look(listed, ~refused)
        if self._cache_errors and task.role:
            # The cache outlives evictions: a node that was refused stays refused for the role (reference section 1.9).
            self._refused[task.job, task.role] = refused & seen
        session.trail.looked(search, taken, seen=seen if session.searches.samples else None)
        if not taken.any():
            session.trail.task_ended(task, Ending.NO_CANDIDATES)
        return taken

    def _listed(self, task: Task) -> RowArray:
        """Return node rows in search order, without those that were hopeless in allocate."""
        session = self._session
        job = session.job_of(task)
        errors = None if job is None else session.fit.of(job, task)
        if errors is not None and errors.codes is not None:
            hopeless = errors.unresolvable_rows()
            if hopeless.any():
                # Volcano walks a map here, in random order; rows are in name order.
                return np.flatnonzero(~hopeless)
        return session.nodes.arrival

    def _look(self, listed: RowArray, feasible: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Return which nodes were taken and which were looked at; the search stops at the first feasible node beyond
        the limit.
        """
        sampling, carry, count = self._session.searches.sampling, self._session.carry, len(listed)
        taken, seen = np.zeros_like(feasible), np.zeros_like(feasible)
        if not count:
            return taken, seen
        order = (
            listed
            if count == len(feasible) and not sampling.applies(count)
            else np.roll(listed, -(carry.start % count))
        )
        beyond = looked_at = count
        if sampling.applies(count):
            beyond = int(np.searchsorted(np.cumsum(feasible[order]), sampling.enough(count) + 1))
            looked_at = min(beyond + 1, count)
        carry.start = (carry.start + looked_at) % count
        seen[order[:looked_at]] = True
        taken[order[:beyond]] = feasible[order[:beyond]]
        return taken, seen
