# SPDX-License-Identifier: Apache-2.0
"""One scheduling cycle's working state. Source: Volcano `framework/session.go`, `session_plugins.go`.

The session owns copies of the view's columns and may change them freely. What leaves it is what `emit_bind` and
`emit_evict` collect, and at the close phases, conditions, statuses of queues, events and the carry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.core.cached import cached
from pumice.core.kube.placed import renew_placed
from pumice.core.kube.storage import uses_claims
from pumice.core.life.task import TaskStatus, TaskTrigger
from pumice.core.messages.decisions import Bind, Evict, Recurring
from pumice.core.outside import ask_nothing
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.closing.report import Opening, Tellers
from pumice.core.session.fit import JobFit
from pumice.core.session.jobs import SessionJobs, SubJob, build_sub_jobs
from pumice.core.session.nodes import KubeNodes, SessionNodes
from pumice.core.session.points.all_points import Points
from pumice.core.session.reasons import Code, FitFailure, Reason, ReasonTable
from pumice.core.session.residents import Residents
from pumice.core.session.search.searches import Searches
from pumice.core.session.statement import LastTransaction, Statement, TaskCopies
from pumice.core.session.topology import SessionTopology
from pumice.core.session.trail.records import Ending
from pumice.core.session.trail.trail import NULL_TRAIL, NullTrail
from pumice.core.state.calm_jobs import OTHER_PHASES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Sequence

    from pumice.config.schema import SchedulerConfig
    from pumice.core.devices.family import Family
    from pumice.core.messages.decisions import FailedAnswers, PodGroupCondition
    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.outside import Ask
    from pumice.core.plugins.plugin import Plugin
    from pumice.core.resources import Resource
    from pumice.core.session.carry import Carry, CycleClock, SessionOptions
    from pumice.core.session.points.nodes import TaskBatch
    from pumice.core.session.search.filters import Counted
    from pumice.core.session.search.node_search import NodeSearch
    from pumice.core.state.jobs import Job
    from pumice.core.state.snapshot import Snapshot

HEEDED: Final = "refusals-stop-backfill"
CRAMMED: Final = "backfill-binds-to-full-nodes"
"""Former rules, under which old journals are replayed (`pumice.config.rules`)."""

# --- Nominations
# Volcano keeps them on the session's copy of a group, which the next cycle does not get; only its pods' nominated
# nodes last. Source: Volcano `actions/utils` (ApplySubJobNominations), `cache.updateJobInfo`.

OUTLIVES: Final = "nominated-domains-last"


class Nominations:
    """Jobs that have a nominated domain, or had one in this session; without the fix nothing is carried over."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._jobs: dict[int, Job] = {}
        self._lasts = OUTLIVES in session.config.pumice.fix
        self._recall()

    def _recall(self) -> None:
        """Recall an earlier cycle's nominations for groups and domains that still exist."""
        known = self._session.carry.nominated
        if not (known and self._lasts):
            return
        for job in self._session.jobs.in_order:
            if job.key in known:
                self.set(job, known[job.key])

    def set(self, job: Job, domains: dict[str, str]) -> None:
        """Set the nominated domains by group id."""
        groups = self._session.sub_jobs(job)
        for uid, name in domains.items():
            if uid in groups and name in self._session.topology.tree.domains:
                groups[uid].nominated_hyper_node = name
        self._jobs[job.row] = job

    def concern(self, job: Job) -> bool:
        """Return whether the job has a nominated domain, or had one."""
        return job.row in self._jobs

    def rows(self) -> frozenset[int]:
        """Return rows of the jobs that are to go first."""
        return frozenset(self._jobs) if self._lasts else frozenset()

    def remember(self) -> None:
        """Write into the carry the nominations that were neither redeemed nor void."""
        kept: dict[str, dict[str, str]] = {}
        for job in self._jobs.values() if self._lasts else ():
            groups = self._session.sub_jobs(job)
            places = {uid: group.nominated_hyper_node for uid, group in groups.items() if group.nominated_hyper_node}
            if places:
                kept[job.key] = places
        self._session.carry.nominated = kept


GANG: Final = "gang"
ANEW: Final = "nominated-nodes-are-counted-anew"
"""The rule of earlier versions."""
EMPTY: Final = "empty-reasons-are-counted"
"""The rule of earlier versions."""


class Session:
    """Holds the columns, the plugins' functions and the collected decisions of one cycle.

    Everything may be tried in a session and undone again: a session that never closes has changed nothing outside.
    `jobs`, `nodes`: columns and questions about them; `queues` by name (in name order); `fit`: why tasks failed;
    `total`: sum of allocatable.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        config: SchedulerConfig,
        clock: CycleClock,
        carry: Carry,
        options: SessionOptions,
        total: Resource,
        trail: NullTrail = NULL_TRAIL,
    ) -> None:
        self.config = config
        self.options = options
        self.trail = trail
        self.total = total
        self.reasons = ReasonTable(names_empty=EMPTY in config.pumice.fix)
        self.counts_anew = ANEW in config.pumice.fix
        self.nodes = SessionNodes(snapshot)
        self.kube = KubeNodes(snapshot)
        self.jobs = SessionJobs(snapshot)
        self.jobs.calm_counts = OTHER_PHASES.isdisjoint(config.pumice.fix)
        self.points = Points(config, self._batch)
        self.plugins: dict[str, Plugin] = {}
        self.kind: Hashable = None  # what it was opened for, of a session that is kept after its close
        self.versions = snapshot.derived.versions
        self.heard: tuple[int, int] = 0, 0  # so many changes of nodes and jobs between sessions
        self.changed_jobs: list[int] = []  # since the end of the session before, of one that goes on
        self._begin(snapshot, clock, carry)
        self.searches = Searches(self)

    def renew(self, snapshot: Snapshot, clock: CycleClock, carry: Carry, nodes: list[int], jobs: list[int]) -> None:
        """Begin another session on the same columns, with all that was made for them. `nodes`, `jobs`: rows that have
        changed since the beginning of the one before. The plugins have still to be told.
        """
        self.changed_jobs = jobs
        self.nodes.renew(snapshot, nodes)
        self.kube.renew()
        self.jobs.begin(snapshot)
        self.points.renew()
        vars(self).pop("residents", None)
        self._begin(snapshot, clock, carry)
        renew_placed(self)
        self.searches.renew()

    def forget(self) -> None:
        """Release everything: parts of a session refer to each other, so its columns and the objects of its snapshot
        would stay until the collector comes. A forgotten session has no attributes.
        """
        self.searches.forget()
        if self.kube.placed is not None:
            self.kube.placed.readers.clear()
        vars(self.nodes).clear()
        vars(self).clear()

    def _begin(self, snapshot: Snapshot, clock: CycleClock, carry: Carry) -> None:
        """Set all that belongs to one cycle."""
        self.snapshot, self.clock, self.carry = snapshot, clock, carry
        self.dims, self.objects, self.derived = snapshot.dimensions, snapshot.objects, snapshot.derived
        # Nodes and jobs share the table of copies: a node keeps a status of its own for each copy (see TaskCopies).
        self.nodes.listings = self.jobs.listings
        self.queues: dict[str, Queue] = {queue.name: queue for queue in snapshot.queues}
        self.fit = JobFit(self)
        self.devices: list[Family] = []  # the kinds of devices that pods share
        self.empty_devices: Callable[[], Sequence[Family]] = tuple  # the same, were the nodes without tasks
        self.tellers = Tellers()
        self.later: Callable[[], Tellers] | None = None  # the same, where plugins are opened only for their words
        self.binds: list[Bind] = []
        self.bound: list[Task] = []  # the task of each bind
        self.evicts: list[Evict] = []
        self.conditions: dict[int, list[PodGroupCondition]] = {}
        self.unready: dict[str, int] = {}  # job -> tasks that are short of its minimum
        self.unschedulable: set[int] = set()  # rows of jobs the gang plugin marked so in this session
        self.last_transaction: dict[int, LastTransaction] = {}
        self.evicted_for: set[int] = set()  # rows of tasks whose room was made by evictions
        self.copies = TaskCopies(self)
        self.pre_filtered: set[int] = set()  # rows of tasks that went through PrePredicate
        self.counted: dict[int, Counted] = {}  # what they heard of their nominated node then, by task row
        self.wake_at: float | None = None
        self.recurs: Recurring | None = None
        self.action = ""
        self.wants_report = False
        self.opening = Opening()
        self._sub_jobs: dict[int, dict[str, SubJob]] = {}
        self._voided: dict[int, Task] = {}  # by row, tasks whose nomination did not hold
        # It reads groups through `sub_jobs`, so `_sub_jobs` must exist; nominations read its tree, so they come after
        # it.
        self.topology = SessionTopology(self)
        self.nominations = Nominations(self)
        self.ask: Ask = ask_nothing  # processes outside
        self.failed: list[Callable[[], Sequence[FailedAnswers]]] = []  # those of each user's plugin
        self.objection = ""  # to the last placement that a plugin refused, in its words
        self.trail.begin(self)

    @cached
    def residents(self) -> Residents:
        """Return the tasks of many nodes, as columns."""
        return Residents(self)

    def _batch(self, tasks: Sequence[Task]) -> TaskBatch:
        return self.residents.batch(tasks)

    # --- lookups -----------------------------------------------------------------------------------------------------

    def job_of(self, task: Task) -> Job | None:
        """Return the task's job, None when it is not in this session."""
        row = self.jobs.of_task[task.row]
        return self.snapshot.jobs.handles[row] if row >= 0 and self.jobs.known[row] else None

    def job_row(self, task: Task) -> int:
        """Return the row of the task's job, -1 when it is not in this session."""
        row = self.jobs.of_task[task.row]
        return row if row >= 0 and self.jobs.known[row] else -1

    def queue_of(self, job: Job) -> Queue:
        """Return the job's queue; every job in a session has one."""
        return self.queues[job.pod_group.queue]

    def sub_jobs(self, job: Job) -> dict[str, SubJob]:
        """Return the job's groups by id."""
        found = self._sub_jobs.get(job.row)
        if found is None:
            found = self._sub_jobs[job.row] = build_sub_jobs(job, self.jobs.min_member[job.row])
        return found

    def sub_job_of(self, job: Job, task: Task) -> SubJob:
        """Return the task's group."""
        groups = self.sub_jobs(job)
        # Most jobs have one group: no search through its tasks.
        if len(groups) == 1:
            return next(iter(groups.values()))
        return next(group for group in groups.values() if task in group.tasks)

    def has_sub_job_policy(self, job: Job) -> bool:
        """Return whether the job has groups beside the default one."""
        return bool(job.pod_group.sub_group_policy)

    def wake(self, at: float, *, every_s: float = 0.0) -> None:
        """Note the moment at which a plugin's answer changes without any event; `every_s`: and again after each such
        time.
        """
        # The session recurs only while every wake-up does: one single moment makes the next cycle differ.
        alone = self.wake_at is None or self.recurs is not None
        if every_s and alone:
            counts = map(sum, self.jobs.counts)
            before = 0.0 if self.recurs is None else self.recurs.every_s
            self.recurs = Recurring(max(before, every_s), (len(self.nodes.specs), len(self.queues), *counts))
        elif not every_s:
            self.recurs = None
        self.wake_at = at if self.wake_at is None else min(self.wake_at, at)

    # --- nodes -------------------------------------------------------------------------------------------------------

    def search_for(self, task: Task, *, room: bool = True) -> NodeSearch:
        """Run PrePredicate and return the search of the task's template. Raises FitFailure when no node fits."""
        self.pre_filtered.add(task.row)
        try:
            self.points.pre_predicate(task)
            search = self.searches.get(task, room=room)
        except FitFailure as failure:
            self.trail.found_nowhere(task, failure)
            raise
        if task.nominated and not self.counts_anew:
            self._count(task, search)
        return search

    def _count(self, task: Task, search: NodeSearch) -> None:
        """Keep PreFilter's present counts: preempt uses them when it asks about the task's nominated node.

        Source: Volcano `actions/preempt` (taskEligibleToPreempt) asks PredicateFn without a PrePredicate before it.
        """
        row = self.nodes.row.get(task.nominated, -1)
        if row >= 0:
            self.counted[task.row] = search.filters.as_pre_filtered(row)

    def nominated_node(self, task: Task) -> str:
        """Return the node that an earlier cycle made room on for the task, "" for none."""
        return "" if task.row in self._voided else task.nominated

    def forget_nomination(self, task: Task) -> None:
        """Drop the task's nomination for the rest of this session."""
        self._voided[task.row] = task

    @property
    def voided(self) -> Collection[Task]:
        """Return the tasks whose nomination did not hold."""
        return self._voided.values()

    # --- what statements do

    def statement(self) -> Statement:
        """Return an empty statement."""
        return Statement(self, [])

    def place(self, task: Task, node: int, status: TaskStatus, *, evicted: bool = False) -> bool:
        """Set status and node, and call the event handlers. False when a handler refused; the caller rolls back."""
        job, jobs, row = self.job_of(task), self.jobs, task.row
        trigger = TaskTrigger.ALLOCATE if status is TaskStatus.ALLOCATED else TaskTrigger.PIPELINE
        jobs.move(job, task, trigger)
        jobs.node[row] = node
        if evicted:
            self.evicted_for.add(row)
        else:
            # A trial that was undone may have left it there: `unplace` does not take it out.
            self.evicted_for.discard(row)
        placed = self.nodes.add(node, task, status)
        for handler in self.points.on_allocate:
            if (said := handler(task, node)) is not None:
                placed, self.objection = False, said  # all handlers see it, then one rollback undoes all
        return placed

    def unplace(self, task: Task) -> None:
        """Set a task back to Pending: the reverse of place, for an allocated, pipelined or binding task."""
        job = self.job_of(task)
        status, node = self.jobs.status[task.row], self.jobs.node[task.row]
        trigger = TaskTrigger.UNPIPELINE if status == TaskStatus.PIPELINED else TaskTrigger.UNALLOCATE
        self.jobs.move(job, task, trigger)
        self.nodes.remove(node, task)
        for handler in self.points.on_deallocate:
            handler(task, node)
        self.jobs.node[task.row] = -1
        self.topology.heading.pop(task.row, None)

    def release(self, task: Task) -> None:
        """Set a running or bound task to Releasing; its room becomes future room."""
        self._shift(task, TaskTrigger.EVICT)
        for handler in self.points.on_deallocate:
            handler(task, self.jobs.node[task.row])

    def unrelease(self, task: Task, *, bound: bool = False) -> None:
        """Undo an eviction: the task is Running again (`bound`: Bound)."""
        self._shift(task, TaskTrigger.UNEVICT_BOUND if bound else TaskTrigger.UNEVICT)
        for handler in self.points.on_allocate:
            handler(task, self.jobs.node[task.row])

    def _shift(self, task: Task, trigger: TaskTrigger) -> None:
        status = self.jobs.move(self.job_of(task), task, trigger)
        node = self.jobs.node[task.row]
        if node >= 0:
            self.nodes.remove(node, task)
            self.nodes.add(node, task, status)

    def remember(self, task: Task) -> None:
        """Keep what the task had reached before the transaction is undone."""
        row = task.row
        self.last_transaction[row] = LastTransaction(
            self.jobs.status[row], self.jobs.node[row], row in self.evicted_for
        )

    def emit_bind(self, task: Task) -> None:
        """Make an allocation final: Binding. If another copy of the task is bound, the allocation is taken back."""
        if task.row in self.jobs.listings and task in self.bound:
            self.unplace(task)
            return
        self.jobs.move(self.job_of(task), task, TaskTrigger.COMMIT)
        node = self.nodes.names[self.jobs.node[task.row]]
        context = self.points.bind_context(task)
        self.binds.append(Bind(task.namespace, task.name, task.uid, node, task.job, context))
        self.bound.append(task)

    def emit_evict(self, task: Task, reason: str, preemptor: str = "", score: float = 0.0) -> None:
        """Record a final eviction."""
        node = self.nodes.names[self.jobs.node[task.row]]
        who = (task.namespace, task.name, task.uid, node, task.job)
        self.evicts.append(Evict(*who, reason, preemptor, self.action, score))

    def allocate_now(self, task: Task, node: int) -> bool:
        """Allocate outside of a statement (backfill): once the job is ready, all that it has allocated is bound. False
        when something was refused: `objection` says what.
        """
        self.objection = ""
        if not self.place(task, node, TaskStatus.ALLOCATED) and not self._binds_anyway(task):
            return False
        job = self.job_of(task)
        assert job is not None
        # The task that makes the job ready sends off all that waited for it, up to the first that is refused.
        if self.job_ready(job):
            for allocated in self.jobs.tasks_in(job, TaskStatus.ALLOCATED):
                if shortage := self._shortage(allocated):
                    self.objection = shortage
                    self.fit.record(job, None, task, self.fit.at(node, Reason("", Code.ERROR, shortage)))
                    return False
                self.emit_bind(allocated)
        return True

    def _shortage(self, task: Task) -> str:
        """Return what the node of an allocated task lacks to bind it, in Volcano's words; "" when it has room.

        backfill looks at no room, but the cache does when it is told to bind: a node may have all the pods that it may
        have, or less than is given away. Source: Volcano `NodeInfo.AddTask`, status Binding.
        """
        node = self.jobs.node[task.row]
        # What is allocated and not bound is on the session's node, not on the cache's.
        unbound = [one for one in self.nodes.tasks_on(node) if self.jobs.status[one.row] == TaskStatus.ALLOCATED]
        idle = [line[node] for line in self.nodes.idle_at]
        for dimension, amount in (item for one in unbound for item in one.template.items):
            idle[dimension] += amount
        short = [self.dims.names[i] for i, amount in task.template.items if amount - idle[i] >= MIN_RESOURCE]
        if not short or CRAMMED in self.config.pumice.fix:
            return ""
        named = self.nodes.specs[node].allocatable.scalars or {}
        room = self.dims.resource(idle)
        room.scalars = {**dict.fromkeys(named, 0.0), **(room.scalars or {})}
        return (
            f"node {self.nodes.names[node]} resources [{' '.join(short)}] are not enough to put task <{task.key}>, "
            f"idle: {room.string()}, req: {task.template.request.string()}"
        )

    def _binds_anyway(self, task: Task) -> bool:
        """Return whether the refusal of an event handler is ignored, as by Volcano's `Session.Allocate`.

        What volumes and claims need was not reserved, so Volcano's PreBind would refuse the pods that have such.
        """
        needs = task.template.resource_claims or uses_claims(task.template)
        return bool(self.objection) and not needs and HEEDED not in self.config.pumice.fix

    # --- merged answers

    def job_ready(self, job: Job) -> bool:
        """Return JobReady."""
        return self.points.job_ready(job)

    def job_pipelined(self, job: Job) -> bool:
        """Return JobPipelined."""
        return self.points.job_pipelined(job)

    def sub_job_ready(self, sub_job: SubJob) -> bool:
        """Return SubJobReady; without a policy the job's own answer."""
        if not sub_job.job.pod_group.sub_group_policy:
            return self.points.job_ready(sub_job.job)
        return self.points.sub_job_ready(sub_job)

    def sub_job_pipelined(self, sub_job: SubJob) -> bool:
        """Return SubJobPipelined; without a policy the job's own answer."""
        if not sub_job.job.pod_group.sub_group_policy:
            return self.points.job_pipelined(sub_job.job)
        return self.points.sub_job_pipelined(sub_job)

    @cached
    def _only_gang_judges(self) -> bool:
        """Return whether no other plugin says which jobs are valid."""
        return self.points.job_valid.names in ((), (GANG,))

    def job_is_valid(self, job: Job) -> bool:
        """Return whether JobValid has no objection."""
        all_wait = self.jobs.all_wait(job)
        # Most jobs that wait did so in the cycle before: gang would count the same tasks again.
        if all_wait and job.valid_under is self.config:
            return True
        verdict = self.points.job_valid(job)
        if verdict is not None:
            self.trail.job_ended(job, Ending.NOT_VALID, verdict.message)
        elif all_wait and self._only_gang_judges:
            job.valid_under = self.config
        return verdict is None
