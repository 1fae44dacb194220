# SPDX-License-Identifier: Apache-2.0
"""The plugin capacity: arguments, registration, and upkeep of the numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.config.arguments import INTEGER, SWITCH, Argument, PluginArguments, at_least
from pumice.core.messages.queue_tables import QueueTables
from pumice.core.plugins.capacity.claims import DeviceQuotas, quota_of
from pumice.core.plugins.capacity.ledger import Ledger
from pumice.core.plugins.capacity.limits import ROOT, Columns
from pumice.core.plugins.plugin import BuiltInPlugin, Limit
from pumice.core.resources import PODS, ZERO, Resource, exceeded_part, higher, intersection
from pumice.core.session.fit import TooLittle, queue_parts
from pumice.core.session.points.votes import Vote
from pumice.core.session.victim_order import victim_queue

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.plugins.capacity.claims import ClaimQuota
    from pumice.core.plugins.capacity.limits import BoolArray, CapacityAttributes
    from pumice.core.session.points.all_points import State
    from pumice.core.session.points.victims import GangEvictor
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

# --- Admission, allocation, and the right to take from others

COUNTS_LENT: Final = "enqueue-counts-what-is-lent"
RECLAIMING: Final = frozenset({"reclaim", "gangreclaim"})


class CapacityLimits:
    """The rules JobEnqueueable, JobEnqueued, Allocatable and Preemptive.

    `levels`: how many ancestors may lend their deserved to Preemptive (ancestorReclaimLevel). `charge_on_admission`
    (fix): a job counts as inqueue when it was admitted, not when this plugin voted for it.

    Volcano counts all that is allocated against a queue's ancestors: a job whose queue is below its due is not admitted
    to a full cluster, and reclaim, which passes over jobs that are not admitted, never makes room for it. Under the fix
    COUNTS_LENT what reclaim could take does not count.
    """

    def __init__(
        self, session: Session, ledger: Ledger, claims: DeviceQuotas, *, levels: int, charge_on_admission: bool
    ) -> None:
        self._session = session
        self._ledger = ledger
        self._claims = claims
        self._levels = levels
        self._charge_on_admission = charge_on_admission
        actions, fixes = session.config.actions, session.config.pumice.fix
        self._counts_lent = COUNTS_LENT in fixes and ledger.hierarchical and not RECLAIMING.isdisjoint(actions)

    def job_enqueueable(self, job: Job) -> Vote:
        """Vote whether min + allocated + inqueue - elastic is within the real capability on every level, and the queue
        is open.
        """
        queue = self._session.queue_of(job)
        if not self._ledger.ready or not queue.is_open:
            return Vote.REJECT
        own = self._ledger.of(queue.name)
        if job.pod_group.min_resources is None and not self._claims.counts(own, job):
            return Vote.PERMIT
        lent = self._counts_lent and self._may_reclaim(own, job)
        # Stops at the first level that refuses: its words are those that people read.
        if not all(self._admits(attributes, job, lent=lent) for attributes in self._ledger.line(queue.name)):
            return Vote.REJECT
        # v1.15.1 charges while it votes: a later Reject of the tier leaves the charge standing to the session's end.
        if not self._charge_on_admission:
            self._charge(job)
        return Vote.PERMIT

    def _may_reclaim(self, own: CapacityAttributes, job: Job) -> bool:
        """Return whether reclaim would look for room for the job, given the jobs admitted to its queue."""
        minimum = job.pod_group.min_resources or Resource()
        total = minimum.clone().add(own.inqueue)
        return any(_below_deserved(attributes, total) for attributes in [own, *self._lenders(own)])

    def _lent(self, attributes: CapacityAttributes, borrower: str) -> Resource:
        """Return the amount that the other queues below this one hold above their deserved, or can give back anyhow."""
        total = Resource()
        for name, limits in self._ledger.limits.items():
            if name != borrower and limits.leaf and attributes.limits.name in limits.ancestors:
                other, queue = self._ledger.of(name), self._session.queues[name]
                gives = queue.reclaimable and _above_deserved(other)
                above = exceeded_part(other.allocated, limits.deserved) if gives else Resource()
                total.add(higher(above, other.elastic))
        return total

    def _given_back(self, attributes: CapacityAttributes, job: Job, *, lent: bool) -> Resource:
        own = job.pod_group.queue
        if not lent or attributes.limits.name == own:
            return attributes.elastic
        return self._lent(attributes, own).add(self._ledger.of(own).elastic)

    def _admits(self, attributes: CapacityAttributes, job: Job, *, lent: bool) -> bool:
        minimum = job.pod_group.min_resources or Resource()
        future = minimum.clone().add(attributes.allocated).add(attributes.inqueue)
        given_back = self._given_back(attributes, job, lent=lent)
        future.sub_without_assert(given_back)
        fits, short = future.less_equal_with_dimension_and_resources_name(attributes.limits.real_capability, minimum)
        if not fits:
            most = attributes.limits
            parts = queue_parts(attributes.allocated, attributes.inqueue, given_back)
            self._session.fit.admission.note_amounts(job.row, TooLittle(future, most.real_capability, most.name, parts))
            self._session.fit.remark(job, "queue resource quota insufficient", "insufficient", short)
        return fits and self._claims.admit(attributes, job)

    def job_enqueued(self, job: Job) -> None:
        """Charge an admitted job (only under the fix)."""
        if self._ledger.ready and (job.pod_group.min_resources is not None or self._claims.active):
            self._charge(job)

    def _charge(self, job: Job) -> None:
        deducted = self._session.jobs.without_gated(job, job.pod_group.min_resources or Resource())
        for attributes in self._ledger.line(job.pod_group.queue):
            attributes.inqueue.add(deducted)
        self._claims.charge(self._ledger.line(job.pod_group.queue), job)

    def allocatable(self, queue: Queue, task: Task) -> bool:
        """Return whether the queue is open and a leaf, and the task fits into the real capability on every level."""
        if not queue.is_open or not self._ledger.ready or not self._ledger.of(queue.name).limits.leaf:
            return False
        return all(
            fits(attributes, attributes.allocated, task) and self._claims.fit(attributes.claims, task)
            for attributes in self._ledger.line(queue.name)
        )

    def preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        """Return whether the tasks stay within the real capability, and within deserved in at least one requested
        dimension.
        """
        if not self._ledger.ready or not queue.is_open:
            return False
        total = Resource()
        for task in tasks:
            total.add(task.template.request)
        own = self._ledger.of(queue.name)
        future = own.allocated.clone().add(total)
        if not future.less_equal_with_dimension_and_resources_name(own.limits.real_capability, total)[0]:
            return False
        # One dimension below what is deserved is enough here; the real capability above must hold in all
        # (PreemptiveFn).
        return any(_below_deserved(attributes, total) for attributes in [own, *self._lenders(own)])

    def _lenders(self, own: CapacityAttributes) -> list[CapacityAttributes]:
        # A flat queue has no ancestors to borrow from.
        if not self._ledger.hierarchical:
            return []
        # Ancestors run from the root down; level 1 is the parent.
        nearest = own.limits.ancestors[::-1][: self._levels]
        return [self._ledger.of(name) for name in nearest if name != ROOT]


def _below_deserved(attributes: CapacityAttributes, total: Resource) -> bool:
    future = attributes.allocated.clone().add(total)
    holds, _ = future.less_equal_partly_with_dimension_zero_filtered(attributes.limits.deserved, total)
    return holds


def _above_deserved(attributes: CapacityAttributes) -> bool:
    deserved, allocated = attributes.limits.deserved, attributes.allocated
    return deserved.is_empty() or any(allocated.get(name) > deserved.get(name) for name in deserved.resource_names())


def fits(attributes: CapacityAttributes, allocated: Resource, task: Task) -> bool:
    """Return whether allocated + the task's request is within the real capability, in the requested dimensions."""
    # Volcano also counts tasks whose queue-allocation gate it has removed, with SchedulingGatesQueueAdmission, a
    # feature that is off by default.
    request = task.template.request
    future = allocated.clone().add(request)
    holds, _ = future.less_equal_with_dimension_and_resources_name(attributes.limits.real_capability, request)
    return holds


# --- Reclaim
# Victims are tasks of queues above what they deserve, never below a guarantee.

Answer = tuple[list["Task"], Vote]


class Running:
    """The allocated amounts that queues keep while victims are chosen one after the other."""

    def __init__(self) -> None:
        self._allocated: dict[str, Resource] = {}

    def of(self, attributes: CapacityAttributes) -> Resource:
        """Return the queue's remaining allocated so far."""
        name = attributes.limits.name
        if name not in self._allocated:
            self._allocated[name] = attributes.allocated.clone()
        return self._allocated[name]

    def take(self, queues: Sequence[CapacityAttributes], task: Task) -> None:
        """Choose the task as a victim: these queues have less."""
        for attributes in queues:
            self.of(attributes).sub_without_assert(task.template.request)


class CapacityReclaim:
    """The rules Reclaimable and UnifiedEvictable.

    `levels` ancestors must be above what they deserve as well (ancestorReclaimLevel).
    """

    def __init__(self, session: Session, ledger: Ledger, *, levels: int) -> None:
        self._session = session
        self._ledger = ledger
        self._levels = levels if ledger.hierarchical else 0

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> Answer:
        """Return victims in victim order: they free something that the reclaimer requests, of a queue above its
        deserved, guarantees kept.
        """
        job = self._session.job_of(reclaimer)
        if not self._ledger.ready or job is None:
            return [], Vote.REJECT
        own, left = self._ledger.of(job.pod_group.queue), Running()
        victims: list[Task] = []
        # Queues only lose by this: where no candidate may go first, none may go later. To compare two of a tree's
        # queues costs more than all else here.
        if not any(self._charged(own, reclaimer, each, left) for each in self._unlike(candidates)):
            return victims, Vote.PERMIT
        # capacity.go sorts its candidates; proportion and drf take them as they come.
        queue = victim_queue(self._session, candidates, reclaimer)
        while len(queue):
            victim = queue.pop()
            charged = self._charged(own, reclaimer, victim, left)
            if charged:
                left.take(charged, victim)
                victims.append(victim)
        return victims, Vote.PERMIT

    def evictable(self, context: GangEvictor, candidates: Sequence[Task]) -> Answer:
        """Return victims for gangs: preemption within the queue may take any task; reclaim checks guarantee and
        deserved of the leaf only.
        """
        # Within a queue nothing changes hands, so neither guarantee nor deserved is asked.
        if context.kind == "gangpreempt":
            return list(candidates), Vote.PERMIT
        if not self._ledger.ready:
            return [], Vote.REJECT
        left = Running()
        victims: list[Task] = []
        for victim in candidates:
            attributes = self._queue_of(victim)
            if attributes is None or not keeps_guarantee(attributes, left.of(attributes), victim):
                continue
            if _is_free(attributes, victim) or _exceeds(attributes, left.of(attributes), victim):
                left.take([attributes], victim)
                victims.append(victim)
        return victims, Vote.PERMIT

    def _unlike(self, tasks: Iterable[Task]) -> Iterable[Task]:
        """Return a task of each queue and request: all others are judged as one of them."""
        jobs = ((self._session.job_of(task), task) for task in tasks)
        return {(job.pod_group.queue, task.template.number): task for job, task in jobs if job is not None}.values()

    def _queue_of(self, task: Task) -> CapacityAttributes | None:
        job = self._session.job_of(task)
        return None if job is None else self._ledger.of(job.pod_group.queue)

    def _charged(
        self, own: CapacityAttributes, reclaimer: Task, victim: Task, left: Running
    ) -> list[CapacityAttributes]:
        """Return the queues that have less when the victim goes; empty when it may not be taken."""
        attributes = self._queue_of(victim)
        if attributes is None or not _shares_dimension(victim, reclaimer):
            return []
        if not keeps_guarantee(attributes, left.of(attributes), victim):
            return []
        if _is_free(attributes, victim):
            # Neither queue deserves what is asked for under the shared ancestor: taking it would only turn the tables.
            if self._share_ancestor(own, attributes) and _is_free(own, reclaimer):
                return []
        elif not _exceeds(attributes, left.of(attributes), victim):
            return []
        ancestors = self._ancestors_to_check(own, attributes)
        for ancestor in ancestors:
            if not _is_free(ancestor, victim) and not _exceeds(ancestor, left.of(ancestor), victim):
                return []
        return [attributes, *ancestors]

    def _ancestors_to_check(self, own: CapacityAttributes, attributes: CapacityAttributes) -> list[CapacityAttributes]:
        """Return the ancestors up to the level, nearest first, without the root and without those the reclaimer has at
        the same level.
        """
        mine, theirs = self._nearest(own), self._nearest(attributes)
        return [
            self._ledger.of(name)
            for level, name in enumerate(theirs)
            if name != ROOT and not (level < len(mine) and mine[level] == name)
        ]

    def _nearest(self, attributes: CapacityAttributes) -> list[str]:
        return attributes.limits.ancestors[::-1][: self._levels]

    def _share_ancestor(self, left: CapacityAttributes, right: CapacityAttributes) -> bool:
        return bool({*self._nearest(left)} & {*self._nearest(right)} - {ROOT})


def _shares_dimension(victim: Task, reclaimer: Task) -> bool:
    # Every task asks for a pod, so pods would make any two share a dimension.
    return any(name != PODS for name in intersection(victim.template.request, reclaimer.template.request))


def keeps_guarantee(attributes: CapacityAttributes, allocated: Resource, victim: Task) -> bool:
    """Return whether the queue still has its guarantee without the victim (tolerant)."""
    rest = allocated.clone().sub_without_assert(victim.template.request)
    return attributes.limits.guarantee.less_equal(rest, ZERO)


def _is_free(attributes: CapacityAttributes, task: Task) -> bool:
    """Return whether the queue deserves nothing of the requested resources."""
    return not intersection(task.template.request, attributes.limits.deserved)


def _exceeds(attributes: CapacityAttributes, allocated: Resource, victim: Task) -> bool:
    """Return whether the queue has more than it deserves in a dimension that the victim asks for."""
    more, _ = allocated.greater_partly_with_relevant_dimensions(attributes.limits.deserved, victim.template.request)
    return more


# --- Simulation of preemptions
# A trial's `state` is a dictionary that belongs to the one who tries; a plugin keeps its part under its name.

NAME: Final = "capacity"


@dataclass(slots=True)
class QueueTrial:
    """Copies of the attributes that the trial has changed, by queue."""

    allocated: dict[str, Resource] = field(default_factory=dict[str, "Resource"])
    claims: dict[str, ClaimQuota | None] = field(default_factory=dict[str, "ClaimQuota | None"])


class CapacitySimulation:
    """The rules SimulateAddTask, SimulateRemoveTask and SimulateAllocatable. The queue's state is not asked again, as
    in Volcano.
    """

    def __init__(self, session: Session, ledger: Ledger, claims: DeviceQuotas) -> None:
        self._session = session
        self._ledger = ledger
        self._claims = claims

    def add(self, state: State, preemptor: Task, task: Task, node: int) -> str | None:
        """Place the task in the trial; a returned text is an error."""
        return self._change(state, task, placed=True)

    def remove(self, state: State, preemptor: Task, task: Task, node: int) -> str | None:
        """Remove the task in the trial."""
        return self._change(state, task, placed=False)

    def allocatable(self, state: State, queue: Queue, task: Task) -> bool:
        """Return whether the task fits into the real capability on every level, as the trial stands."""
        if not self._ledger.ready or not self._ledger.of(queue.name).limits.leaf:
            return False
        trial = _trial(state)
        return all(
            fits(attributes, trial.allocated.get(attributes.limits.name, attributes.allocated), task)
            and self._claims.fit(trial.claims.get(attributes.limits.name, attributes.claims), task)
            for attributes in self._ledger.line(queue.name)
        )

    def _change(self, state: State, task: Task, *, placed: bool) -> str | None:
        job = self._session.job_of(task)
        if job is None:
            return f"[capacity] job {task.job} not found in session (orphaned task from deleted PodGroup)"
        trial = _trial(state)
        for attributes in self._ledger.line(job.pod_group.queue):
            allocated, claims = _parts(trial, attributes)
            if placed:
                allocated.add(task.template.request)
                self._claims.take(claims, task)
            else:
                allocated.sub_without_assert(task.template.request)
                self._claims.give_back(claims, task)
        return None


def _trial(state: State) -> QueueTrial:
    trial: QueueTrial = state.setdefault(NAME, QueueTrial())
    return trial


def _parts(trial: QueueTrial, attributes: CapacityAttributes) -> tuple[Resource, ClaimQuota | None]:
    name = attributes.limits.name
    if name not in trial.allocated:
        trial.allocated[name] = attributes.allocated.clone()
        trial.claims[name] = attributes.claims.copy() if attributes.claims else None
    return trial.allocated[name], trial.claims[name]


# --- Orders


class QueueOrders:
    """QueueOrder of flat queues and of a tree, VictimQueueOrder of a tree.

    `best_effort_last` (fix): queues that deserve nothing come after all others, instead of standing at share 1 among
    them.
    """

    def __init__(self, ledger: Ledger, *, best_effort_last: bool) -> None:
        self._ledger = ledger
        self._best_effort_last = best_effort_last

    def flat(self, left: Queue, right: Queue) -> int:
        """Compare flat queues: higher priority first, then the smaller share, then a queue that deserves something."""
        if left.priority != right.priority:
            return right.priority - left.priority
        return self._by_share(self._ledger.of(left.name), self._ledger.of(right.name))

    def tree(self, left: Queue, right: Queue) -> int:
        """Compare queues of a tree: higher priority first; leaves before others; two leaves by their ancestors below
        the deepest common one.
        """
        if left.priority != right.priority:
            return right.priority - left.priority
        a, b = self._ledger.of(left.name), self._ledger.of(right.name)
        if a.limits.leaf != b.limits.leaf:
            return -1 if a.limits.leaf else 1
        if a.limits.leaf:
            # Two leaves compare as their branches do, right below the ancestor that they share.
            below = common_level(a, b) + 1
            a, b = self._at(a, below), self._at(b, below)
        return self._by_share(a, b)

    def _at(self, attributes: CapacityAttributes, level: int) -> CapacityAttributes:
        ancestors = attributes.limits.ancestors
        return self._ledger.of(ancestors[level]) if level < len(ancestors) else attributes

    def _by_share(self, left: CapacityAttributes, right: CapacityAttributes) -> int:
        a, b = left.limits.deserved.is_empty(), right.limits.deserved.is_empty()
        if left.share == right.share or (self._best_effort_last and a != b):
            return a - b
        return -1 if left.share < right.share else 1

    def victims(self, left: Queue, right: Queue, preemptor: Queue) -> int:
        """Compare queues of victims: the queue that shares a deeper ancestor with the preemptor loses tasks first."""
        own = self._ledger.of(preemptor.name)
        return common_level(self._ledger.of(right.name), own) - common_level(self._ledger.of(left.name), own)


def common_level(left: CapacityAttributes, right: CapacityAttributes) -> int:
    """Return the depth to which two queues have the same ancestors; 0 also without a common one."""
    level = 0
    for index, (a, b) in enumerate(zip(left.limits.ancestors, right.limits.ancestors, strict=False)):
        if a != b:
            break
        level = index
    return level


# --- Gauges


def gauges(ledger: Ledger) -> QueueTables:
    """Return Volcano's gauges as the session opened. Flat queues without jobs show the amounts of their spec, and no
    share.
    """
    kept, demand = ledger.kept, ledger.demand
    busy = np.ones_like(demand.present) if kept.idle is None else demand.present
    deserved, capability, real, limited = kept.deserved, kept.capability, kept.real, busy
    if kept.idle is not None:
        deserved = _either(busy, deserved, kept.idle.deserved)
        capability = _either(busy, capability, kept.idle.capability)
        real = _either(busy, real, kept.idle.real)
        limited = busy | kept.idle.limited
    tables = QueueTables(ledger.dims.names, ledger.names).put("deserved", *deserved)
    tables = tables.put("allocated", demand.allocated).put("request", demand.request)
    tables = tables.put("capacity", *capability, limited).put("real_capacity", *real)
    return tables.number("share", ledger.shares, busy)


def amounts(ledger: Ledger) -> QueueTables:
    """Return the amounts that Volcano has no metric for, as the session opened."""
    tables = QueueTables(ledger.dims.names, ledger.names).put("guarantee", *ledger.kept.guarantee)
    return tables.put("inqueue", ledger.demand.inqueue).put("elastic", ledger.demand.elastic)


def overused(ledger: Ledger) -> QueueTables:
    """Return which queues have more than they deserve as the session closes: 1 or 0."""
    seen = ledger.present_shares() > 1.0
    busy = None if ledger.kept.idle is None else ledger.demand.present
    return QueueTables(ledger.dims.names, ledger.names).number("overused", seen, busy)


def _either(busy: BoolArray, ours: Columns, idle: Columns) -> Columns:
    return Columns(np.where(busy, ours.amounts, idle.amounts), np.where(busy, ours.named, idle.named))


LEVELS: Final = Argument(
    "ancestorReclaimLevel", at_least(INTEGER, 0), 0, "So many levels up the tree a queue may reclaim from."
)
COUNT_DEVICES: Final = Argument(
    "capacity.DynamicResourceAllocationEnable", SWITCH, True, "Whether devices of resource claims count."
)
SUM_CAPACITIES: Final = Argument(
    "capacity.DRAConsumableCapacityEnable", SWITCH, False, "Whether their consumable capacities count."
)


class Capacity(BuiltInPlugin):
    """Keeps a ledger of the queues' amounts. The flag enableHierarchy makes a tree of the queues."""

    name = "capacity"
    says = "gives each queue, in a tree, what it deserves, guarantees and may have at most, by resource"
    listens = ("QueueOrder", "Reclaimable", "Preemptive", "Allocatable", "JobEnqueued", "Hierarchy")
    says_at = MappingProxyType({"Hierarchy": "goes by the tree of queues that their spec.parent makes"})
    names_gangs = True
    limits = Limit.QUEUE
    arguments = (LEVELS, COUNT_DEVICES, SUM_CAPACITIES)
    only_answers = True

    def __init__(self, arguments: PluginArguments) -> None:
        self._levels = LEVELS.of(arguments)
        self._count_devices, self._sum_capacities = COUNT_DEVICES.of(arguments), SUM_CAPACITIES.of(arguments)

    def on_session_open(self, session: Session) -> None:
        """Gather the queues' numbers, and register the rules."""
        option, fixes = session.config.plugin(self.name), session.config.pumice.fix
        self._session = session
        self._fresh_ancestors = "capacity-ancestor-shares" in fixes
        self.ledger = Ledger(session, hierarchical=option is not None and option.is_enabled("Hierarchy"))
        if not self.ledger.ready:
            session.fit.obstacles[self.name] = self.ledger.problem
        self._claims = DeviceQuotas(session, enabled=self._count_devices, capacities=self._sum_capacities)
        self.on_session_renew(session)
        self._register_limits(session, charge_on_admission="enqueue-charges-once" in fixes)
        self._register_orders(session, best_effort_last="capacity-best-effort-last" in fixes)
        simulation = CapacitySimulation(session, self.ledger, self._claims)
        session.points.simulate_add_task.add(self.name, simulation.add)
        session.points.simulate_remove_task.add(self.name, simulation.remove)
        session.points.simulate_allocatable.add(self.name, simulation.allocatable)
        session.points.handle(self._on_allocate, self._on_deallocate, takes_back=True)

    def can_go_on(self, session: Session) -> bool:
        """Return whether the tree could be used, and still can: an unusable one registers fewer rules."""
        could = self.ledger.ready
        self.ledger.begin(session)
        return could and self.ledger.ready

    def on_session_renew(self, session: Session) -> None:
        """Count devices again; the ledger has been filled. A change of a claim ends the session that has read it."""
        session.tellers.queues.append(self)
        self._count_claims()

    def on_session_close(self, session: Session) -> None:
        """Write nothing."""

    def _register_limits(self, session: Session, *, charge_on_admission: bool) -> None:
        limits = CapacityLimits(
            session, self.ledger, self._claims, levels=self._levels, charge_on_admission=charge_on_admission
        )
        reclaim = CapacityReclaim(session, self.ledger, levels=self._levels)
        points = session.points
        points.reclaimable.add(self.name, reclaim.reclaimable)
        points.unified_evictable.add(self.name, reclaim.evictable)
        points.preemptive.add(self.name, limits.preemptive)
        points.allocatable.add(self.name, limits.allocatable)
        points.job_enqueueable.add(self.name, limits.job_enqueueable)
        if charge_on_admission:
            points.job_enqueued.add(self.name, limits.job_enqueued)

    def _register_orders(self, session: Session, *, best_effort_last: bool) -> None:
        orders = QueueOrders(self.ledger, best_effort_last=best_effort_last)
        if not self.ledger.hierarchical:
            session.points.queue_order.add(self.name, orders.flat)
        # An unusable tree registers no orders at all, as in capacity.go.
        elif self.ledger.ready:
            session.points.queue_order.add(self.name, orders.tree)
            session.points.victim_queue_order.add(self.name, orders.victims)

    # --- keeping up
    # -------------------------------------------------------------------------------------------------------------

    def _count_claims(self) -> None:
        """Count devices where claims exist at all."""
        if not self._claims.active or not self.ledger.ready:
            return
        jobs: dict[str, list[Job]] = {}
        for job in self._session.jobs.in_order:
            jobs.setdefault(job.pod_group.queue, []).append(job)
        for queue in self._session.snapshot.queues:
            self.ledger.of(queue.name).claims = quota_of(queue)
        for name, of_queue in jobs.items():
            own, *ancestors = self.ledger.line(name)
            self._claims.open(own, of_queue, ancestors)

    def _on_allocate(self, task: Task, node: int) -> None:
        self._move(task, placed=True)

    def _on_deallocate(self, task: Task, node: int) -> None:
        self._move(task, placed=False)

    def _move(self, task: Task, *, placed: bool) -> None:
        job = self._session.job_of(task)
        if job is None or not self.ledger.ready:
            return
        line = self.ledger.line(job.pod_group.queue)
        for attributes in line:
            if placed:
                attributes.allocated.add(task.template.request)
                self._claims.take(attributes.claims, task)
            else:
                attributes.allocated.sub_without_assert(task.template.request)
                self._claims.give_back(attributes.claims, task)
        # Volcano leaves the ancestors' shares as they were when the session opened.
        for attributes in line if self._fresh_ancestors else line[:1]:
            attributes.update_share()

    # --- numbers
    # ------------------------------------------------------------------------------------------------------------------

    def gauges(self) -> QueueTables | None:
        """Return the numbers of each queue when the session opened; empty while the tree cannot be used."""
        return gauges(self.ledger) if self.ledger.ready else None

    def amounts(self) -> QueueTables | None:
        """Return the amounts that Volcano has no metric for; empty while the tree cannot be used."""
        return amounts(self.ledger) if self.ledger.ready else None

    def share_now(self, queue: str) -> float | None:
        """Return the shares by which queues are ordered now; None while the tree cannot be used."""
        return self.ledger.of(queue).share if self.ledger.ready else None

    def held_now(self, queue: str) -> Resource | None:
        """Return the amount that the queue holds now; None while the tree cannot be used."""
        return self.ledger.of(queue).allocated if self.ledger.ready else None

    def verdicts(self) -> QueueTables | None:
        """Return which queues are overused as the session closes; empty while the tree cannot be used."""
        return overused(self.ledger) if self.ledger.ready else None
