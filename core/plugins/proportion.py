# SPDX-License-Identifier: Apache-2.0
"""proportion: each queue deserves a share of the requests by weight. Source: Volcano `plugins/proportion`."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pumice.core.messages.queue_tables import QueueTables
from pumice.core.plugins.plugin import BuiltInPlugin, Limit
from pumice.core.resources import CPU, INFINITY, LARGEST, MEMORY, MIN_RESOURCE, PODS, ZERO, Resource, exceeded_part
from pumice.core.session.demand import QueueDemand, column_of, exceeds
from pumice.core.session.fit import TooLittle, queue_parts
from pumice.core.session.jobs import ByQueue
from pumice.core.session.points.orders import QueueKey
from pumice.core.session.points.votes import Refusals, Vote
from pumice.core.state.derived import Like, derived
from pumice.core.state.dimensions import PODS as POD_ROW
from pumice.core.state.sources import QUEUE_LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.demand import BoolArray, JobRows
    from pumice.core.session.points.all_points import State
    from pumice.core.session.session import Session
    from pumice.core.state.dimensions import Dimensions, FloatArray
    from pumice.core.state.jobs import Job
    from pumice.core.state.snapshot import Snapshot
    from pumice.core.state.sources import LimitedQueue, QueueLimits

# --- Water-filling


@dataclass(slots=True, eq=False)
class Basin:
    """The amounts to pour, and the queues that receive them: float64 [dimension] and [dimension, queue]; `weight` int64
    [queue].

    `names_scalars`, bool [queue]: the cluster or the queue's guarantee names a scalar, so that the first pass changes
    what a queue names. `has_zero_scalar`: the cluster names a scalar with an amount of 0.
    """

    total: FloatArray
    weight: Any
    request: FloatArray
    real: FloatArray
    guarantee: FloatArray
    names_scalars: Any
    has_zero_scalar: bool = False


def fill(basin: Basin) -> tuple[FloatArray, bool]:
    """Return (deserved, float64 [dimension, queue]; whether anything was poured at all).

    A pass reads what remained at its start, so the order of queues has no say but in the last bit of a sum: sums run in
    queue order. Source: Volcano's proportion, with Resources per queue; here every step is done for all queues
    together, with the same operations.
    """
    remaining, deserved = basin.total.tolist(), np.zeros(basin.request.shape)
    # Computed once: no pass changes what a queue may have or asks for.
    ceiling, weight, first = np.minimum(basin.real, basin.request), basin.weight, True
    gives_back = min(weight.tolist(), default=0) < 0 or np.minimum.reduce(basin.guarantee, axis=None, initial=0.0) < 0.0
    while shares := sum(weight.tolist()):
        raised = deserved + np.multiply.outer(remaining, weight / shares)
        np.minimum(raised, ceiling, out=raised)
        np.maximum(raised, basin.guarantee, out=raised)
        growth = raised - deserved
        left = _left(remaining, growth, gives_back=gives_back)
        grew = np.logical_or.reduce(growth)
        # Volcano compares Resources: the first pass names scalars of 0 and so counts as a change.
        if first:
            grew |= basin.names_scalars
        wants = np.logical_or.reduce(basin.request - raised >= MIN_RESOURCE)
        weight = weight * (grew & wants)  # without a weight a queue keeps what it has
        # As above: after the first pass a scalar of 0 makes what remains another Resource.
        same = left == remaining and not (first and basin.has_zero_scalar)
        remaining, deserved, first = left, raised, False
        if same or _is_empty(remaining):
            break
    return deserved, not first


def _left(remaining: list[float], growth: FloatArray, *, gives_back: bool) -> list[float]:
    """Return the remaining amounts: first add what queues gave back, then subtract what they took (ExceededPart).

    `gives_back`: whether a weight or a guarantee is below 0; with others what a queue has never shrinks.
    """
    if not gives_back:
        taken = _totals(growth)
        return [max(had - took, 0.0) for had, took in zip(remaining, taken, strict=True)]
    taken, returned = _totals(np.maximum(growth, 0.0)), _totals(np.minimum(growth, 0.0))
    return [max(had - gave - took, 0.0) for had, gave, took in zip(remaining, returned, taken, strict=True)]


def _totals(amounts: FloatArray) -> list[float]:
    """Return the sum of each line, added in queue order."""
    totals: list[float] = np.add.accumulate(amounts, axis=1)[:, -1].tolist()
    return totals


def _is_empty(amounts: list[float]) -> bool:
    return max(amounts[:POD_ROW]) < MIN_RESOURCE and max(amounts[POD_ROW + 1 :], default=0.0) < MIN_RESOURCE


# --- Attributes of queues

# --- Limits


@dataclass(slots=True, eq=False)
class QueueBounds:
    """Bounds of queues. `guarantee`, `real` float64 [dimension, queue row]: 0 and infinity where a queue names none;
    the same as Resources by row.

    `real` is the queue's own capability cut to what the others' guarantees leave. `weight` int64.
    `guaranteed` bool [dimension, queue row]: the scalars a guarantee names; `named`: those and the cluster's;
    `names_any` bool [queue row]: whether that is any. `total` float64 [dimension]: the cluster's.
    `room`: `real` with 0 where it does not name a scalar.
    """

    weight: Any
    guarantee: FloatArray
    real: FloatArray
    guaranteed: npt.NDArray[np.bool_]
    named: npt.NDArray[np.bool_]
    names_any: npt.NDArray[np.bool_]
    total: FloatArray
    room: FloatArray
    guarantees: list[Resource]
    reals: list[Resource]


def total_guarantee(queues: Iterable[LimitedQueue]) -> Resource:
    """Return the sum of all queues' guarantees."""
    total = Resource()
    for queue in queues:
        if queue.guarantee is not None:
            total.add(queue.guarantee)
    return total


def real_capability(queue: LimitedQueue, free: Resource) -> Resource:
    """Return the free part of guarantees plus the queue's own, cut to the capability; a capability without cpu or
    memory does not limit it.
    """
    real = free.clone().add(queue.guarantee or Resource())
    if queue.capability is not None:
        capability = queue.capability.clone()
        # proportion.go reads a capability without cpu or memory as no limit there; scalars need no such line
        # (Infinity).
        capability.milli_cpu = capability.milli_cpu if capability.milli_cpu > 0 else LARGEST
        capability.memory = capability.memory if capability.memory > 0 else LARGEST
        real.min_dimension_resource(capability, INFINITY)
    return real


@derived(QUEUE_LIMITS)
def limits_of(known: QueueLimits) -> QueueBounds:
    """Return the limits of the queues."""
    queues, total, dims = known.queues, known.total, known.dimensions
    # All guarantees come off, the queue's own is added back in `real_capability`.
    free = exceeded_part(total, total_guarantee(queues))
    guarantees = [queue.guarantee or Resource() for queue in queues]
    reals = [real_capability(queue, free) for queue in queues]
    guaranteed = _named(guarantees, dims)
    named = guaranteed.copy()
    named[[dims.index(name) for name in total.scalars or ()]] = True
    return QueueBounds(
        weight=np.array([queue.weight for queue in queues], dtype=np.int64),
        guarantee=_columns(guarantees, dims, 0.0),
        real=_columns(reals, dims, np.inf),
        guaranteed=guaranteed,
        named=named,
        names_any=np.array([bool(total.scalars or guarantee.scalars) for guarantee in guarantees], dtype=np.bool_),
        total=_columns([total], dims, 0.0)[:, 0],
        room=_columns(reals, dims, 0.0),
        guarantees=guarantees,
        reals=reals,
    )


def _named(resources: list[Resource], dims: Dimensions) -> npt.NDArray[np.bool_]:
    """Return the scalars that each side names, cut to at least 0."""
    named = np.zeros((len(dims), len(resources)), dtype=np.bool_)
    for row, resource in enumerate(resources):
        for name, amount in (resource.scalars or {}).items():
            named[dims.index(name), row] = amount >= 0
    return named


def _columns(resources: list[Resource], dims: Dimensions, absent: float) -> FloatArray:
    columns = np.full((len(dims), len(resources)), absent)
    for row, resource in enumerate(resources):
        for dimension, value in dims.items(resource):
            columns[dimension, row] = value
    return columns


NONE: Final[dict[str, float]] = {}
Due = tuple[float, float, tuple[tuple[str, float], ...]]
"""What is deserved of cpu and memory (infinity for what is not: its share is 0), and of each scalar that is."""


@dataclass(slots=True, eq=False)
class ProportionAttributes:
    """One queue's numbers; Resources in Volcano's units. `real_capability`: its own capability cut to what others'
    guarantees leave.
    """

    name: str
    allocated: Resource
    real_capability: Resource
    deserved: Resource
    _share: float | None = None  # until it is read
    _due: Due | None = None  # it never changes

    def give(self, request: Resource) -> None:
        """Add a task that the queue got room for."""
        self.allocated.add(request)
        self._share = None

    def take(self, request: Resource) -> None:
        """Remove a task of the queue that lost its room."""
        self.allocated.sub_without_assert(request)
        self._share = None

    @property
    def share(self) -> float:
        """Return the largest allocated / deserved over the dimensions that are deserved."""
        share = self._share
        if share is None:
            share = self._share = self._largest_part()
        return share

    def _largest_part(self) -> float:
        cpu, memory, scalars = self._due or self._find_due()
        allocated = self.allocated
        largest, part = allocated.milli_cpu / cpu, allocated.memory / memory
        if part > largest:
            largest = part
        # `sub_without_assert` may leave less than nothing; the maximum starts at 0.
        if largest < 0.0:
            largest = 0.0
        held = allocated.scalars or NONE
        for name, amount in scalars:
            part = held.get(name, 0.0) / amount
            if part > largest:
                largest = part
        return largest

    def _find_due(self) -> Due:
        due = {name: self.deserved.get(name) for name in self.deserved.resource_names()}
        self._due = due.pop(CPU, inf), due.pop(MEMORY, inf), tuple(due.items())
        return self._due

    def has_room_for(self, request: Resource, allocated: Resource | None = None) -> bool:
        """Return whether allocated (None: as it is now) + request <= deserved in the requested dimensions, exactly;
        pods are ignored.

        That is `less_equal_with_dimension_and_resources_name` without a sum made and names gathered, which would cost
        `bench allocate` 6 % more.
        """
        allocated, deserved = self.allocated if allocated is None else allocated, self.deserved
        if request.milli_cpu > 0 and allocated.milli_cpu + request.milli_cpu > deserved.milli_cpu:
            return False
        if request.memory > 0 and allocated.memory + request.memory > deserved.memory:
            return False
        held, due = allocated.scalars or NONE, deserved.scalars or NONE
        for name, wanted in (request.scalars or NONE).items():
            if wanted > 0 and name != PODS and held.get(name, 0.0) + wanted > due.get(name, 0.0):
                return False
        return True


class Poured(NamedTuple):
    """The amounts that each queue deserves, float64 [dimension, queue]; `filled`: whether anything was poured (some
    queue had a weight); `named` bool [dimension, queue]: every scalar of the cluster and of the queue's guarantee, also
    with 0.
    """

    deserved: FloatArray
    filled: bool
    named: npt.NDArray[np.bool_]


@derived(QUEUE_LIMITS, bound=1)
def _pour(known: QueueLimits, asked: Like[tuple[FloatArray, npt.NDArray[np.bool_]]]) -> Poured:
    """Pour the cluster over the queues. `asked`: the request of each queue, float64 [dimension, queue], and which have
    a job at all, bool [queue].
    """
    request, present = asked.subject
    limits, rows = limits_of(known), present.nonzero()[0]
    basin = Basin(
        total=limits.total,
        weight=limits.weight[rows],
        request=request.take(rows, axis=1),
        real=limits.real.take(rows, axis=1),
        guarantee=limits.guarantee.take(rows, axis=1),
        names_scalars=limits.names_any[rows],
        has_zero_scalar=0.0 in (known.total.scalars or NONE).values(),
    )
    poured, filled = fill(basin)
    deserved = np.zeros(request.shape)
    deserved[:, rows] = poured
    return Poured(deserved, filled, limits.named)


class Attributes(dict[str, ProportionAttributes]):
    """Attributes by queue, made on first use; KeyError for a queue without a job."""

    def __init__(self, snapshot: Snapshot, by_queue: ByQueue) -> None:
        super().__init__()
        self._dims = snapshot.dimensions
        self._limits = limits_of(snapshot.derived)
        self._demand = QueueDemand(snapshot, by_queue)
        self._rows = {queue.name: row for row, queue in enumerate(snapshot.queues)}
        self._promised: dict[str, tuple[Resource, Resource]] = {}
        request, present = self._demand.request, self._demand.present
        # Kept from session to session: poured again only when requests, queues or nodes differ.
        self._poured = _pour(snapshot.derived, Like((request.tobytes(), present.tobytes()), (request, present)))

    def _shares(self) -> FloatArray:
        deserved = self._poured.deserved
        parts = np.zeros(deserved.shape)
        # Below 0.1 a dimension is not deserved (ResourceNames), so it has no share.
        np.divide(self._demand.allocated, deserved, out=parts, where=deserved >= MIN_RESOURCE)
        shares: FloatArray = parts.max(axis=0, initial=0.0)
        return shares

    def gauges(self) -> QueueTables:
        """Return Volcano's gauges, as they were when the session opened.

        A queue without jobs has only what it has allocated and asks for: nothing.
        """
        demand, busy = self._demand, self._demand.present
        tables = self.tables().put("allocated", demand.allocated).put("request", demand.request)
        tables = self.deserved(tables.number("weight", self._limits.weight, busy))
        return tables.number("share", self._shares(), busy) if self._poured.filled else tables

    def deserved(self, tables: QueueTables) -> QueueTables:
        """Return the tables with what queues deserve, if anything was poured."""
        deserved, filled, named = self._poured
        return tables.put("deserved", deserved, named, self._demand.present) if filled else tables

    def amounts(self) -> QueueTables:
        """Return the amounts of every queue that proportion has no metric for."""
        demand, limits = self._demand, self._limits
        tables = self.tables().put("guarantee", limits.guarantee, limits.guaranteed)
        tables = tables.put("real_capacity", limits.real, np.isfinite(limits.real))
        return tables.put("inqueue", demand.inqueue).put("elastic", demand.elastic)

    def overused(self) -> QueueTables:
        """Return 1 for the queues that now have all they deserve, 0 for the others that have a job."""
        allocated = self._with(self._demand.allocated, {name: made.allocated for name, made in self.items()})
        full: npt.NDArray[np.bool_] = np.logical_and.reduce(self._poured.deserved - allocated < MIN_RESOURCE)
        return self.tables().number("overused", full, self._demand.present)

    def _with(self, opening: FloatArray, now: dict[str, Resource]) -> FloatArray:
        """Return the amounts of all queues, with those that have changed since the session opened."""
        amounts = opening.copy()
        for name, resource in now.items():  # what a queue deserves names nothing newer
            amounts[:, self._rows[name]] = column_of(resource, self._dims, len(amounts))
        return amounts

    def tables(self) -> QueueTables:
        """Return no table of the queues yet."""
        return QueueTables(self._dims.names, list(self._rows))

    def promised_to(self, name: str) -> tuple[Resource, Resource]:
        """Return the open part of admitted jobs' minimums in a queue (inqueue), to be charged in place, and what it has
        beyond its jobs' minimums (elastic). Computed at admissions only.
        """
        found = self._promised.get(name)
        if found is None:
            row, demand = self._rows[name], self._demand
            found = self._promised[name] = self._resource(demand.inqueue, row), self._resource(demand.elastic, row)
        return found

    def has(self, name: str) -> bool:
        """Return whether the queue has a job."""
        return name in self or bool(self._demand.present[self._rows[name]])

    def promises(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return each queue's allocated and admitted amounts (inqueue), its elastic amounts, and its real capability, 0
        where that does not name a scalar; float64 [dimension, queue row].
        """
        demand = self._demand
        allocated = self._with(demand.allocated, {name: made.allocated for name, made in self.items()})
        inqueue = self._with(demand.inqueue, {name: inqueue for name, (inqueue, _) in self._promised.items()})
        return allocated, inqueue, demand.elastic, self._limits.room

    def __missing__(self, name: str) -> ProportionAttributes:
        row, demand, limits = self._rows[name], self._demand, self._limits
        if not demand.present[row]:
            raise KeyError(name)
        found = self[name] = ProportionAttributes(
            name=name,
            allocated=self._resource(demand.allocated, row),
            real_capability=limits.reals[row],
            deserved=self._deserved_of(row),
        )
        return found

    def _resource(self, columns: FloatArray, row: int) -> Resource:
        values: list[float] = columns[:, row].tolist()
        return self._dims.resource(values)

    def _deserved_of(self, row: int) -> Resource:
        """Return the deserved amounts: pouring names every scalar of the cluster and of the guarantee, also with 0."""
        deserved, filled, named = self._poured
        if not filled:
            return Resource()
        values: list[float] = deserved[:, row].tolist()
        named_here: list[bool] = named[:, row].tolist()
        told = zip(self._dims.names, values, named_here, strict=False)
        return Resource(values[0], values[1], {name: value for name, value, is_named in told if is_named} or None)


# --- Simulation of preemptions
# A trial's `state` is a dictionary that belongs to the one who tries; a plugin keeps its part under its name.

NAME: Final = "proportion"


class ProportionSimulation:
    """The rules SimulateAddTask, SimulateRemoveTask and SimulateAllocatable.

    The queue's state is not asked again, as in Volcano.
    """

    def __init__(self, session: Session, plugin: Proportion) -> None:
        self._session = session
        self._plugin = plugin

    def add(self, state: State, preemptor: Task, task: Task, node: int) -> str | None:
        """Place the task in the trial; a returned text is an error."""
        allocated = self._allocated(state, task)
        if allocated is None:
            return _orphan(task)
        allocated.add(task.template.request)
        return None

    def remove(self, state: State, preemptor: Task, task: Task, node: int) -> str | None:
        """Remove the task in the trial."""
        allocated = self._allocated(state, task)
        if allocated is None:
            return _orphan(task)
        allocated.sub_without_assert(task.template.request)
        return None

    def allocatable(self, state: State, queue: Queue, task: Task) -> bool:
        """Return whether the queue stays within deserved with the task, as the trial stands."""
        attributes = self._plugin.attributes[queue.name]
        return attributes.has_room_for(task.template.request, _of_trial(state, attributes))

    def _allocated(self, state: State, task: Task) -> Resource | None:
        job = self._session.job_of(task)
        return None if job is None else _of_trial(state, self._plugin.attributes[job.pod_group.queue])


def _orphan(task: Task) -> str:
    return f"[proportion] job {task.job} not found in session (orphaned task from deleted PodGroup)"


def _of_trial(state: State, attributes: ProportionAttributes) -> Resource:
    """Return the queue's allocated in the trial; the session's own until the trial changes it."""
    allocated: dict[str, Resource] = state.setdefault(NAME, {})
    if attributes.name not in allocated:
        # Cloned on first use: a trial on one node touches few queues.
        allocated[attributes.name] = attributes.allocated.clone()
    return allocated[attributes.name]


class Proportion(BuiltInPlugin):
    """Divides the cluster between queues. Queues without any job have no attributes and are never asked about."""

    name = "proportion"
    says = "divides the cluster among queues by weight, up to their capability"
    listens = ("QueueOrder", "Reclaimable", "Preemptive", "Allocatable", "JobEnqueued", "Overused")
    limits = Limit.QUEUE
    only_answers = True

    @classmethod
    def deserved_in(cls, snapshot: Snapshot) -> QueueTables:
        """Return what queues deserve: it follows from jobs, queues and nodes alone."""
        attributes = Attributes(snapshot, ByQueue(snapshot))
        return attributes.deserved(attributes.tables())

    def on_session_open(self, session: Session) -> None:
        """Gather, fill, register."""
        self._session = session
        self._of_task = session.jobs.of_task
        self.on_session_renew(session)
        points = session.points
        points.queue_order.add(self.name, QueueKey(self._place))
        points.reclaimable.add(self.name, self.reclaimable)
        points.overused.add(self.name, self.overused)
        points.allocatable.add(self.name, self.allocatable)
        points.preemptive.add(self.name, self.preemptive)
        self._charges_on_admission = "enqueue-charges-once" in session.config.pumice.fix
        refusals = Refusals(self._refused, charges=not self._charges_on_admission)
        points.job_enqueueable.add_in_columns(self.name, self.job_enqueueable, refusals)
        if self._charges_on_admission:
            points.job_enqueued.add(self.name, self.job_enqueued)
        simulation = ProportionSimulation(session, self)
        points.simulate_add_task.add(self.name, simulation.add)
        points.simulate_remove_task.add(self.name, simulation.remove)
        points.simulate_allocatable.add(self.name, simulation.allocatable)
        session.points.handle(self._on_allocate, self._on_deallocate, takes_back=True)

    def can_go_on(self, session: Session) -> bool:
        """Return True: all rules read the attributes of the session in hand."""
        return True

    def on_session_renew(self, session: Session) -> None:
        """Gather and fill."""
        self.attributes = Attributes(session.snapshot, session.jobs.by_queue)
        self._by_job: dict[int, ProportionAttributes] = {}  # by row; a job stays in its queue for a session
        session.tellers.queues.append(self)

    def on_session_close(self, session: Session) -> None:
        """Write nothing."""

    def _place(self, queue: Queue) -> tuple[int, float]:
        """Order queues: higher priority first, then the smaller share; a queue without a job has no share."""
        return -queue.priority, self.attributes[queue.name].share if self.attributes.has(queue.name) else 0.0

    def overused(self, queue: Queue) -> bool:
        """Return whether deserved <= allocated in every dimension; a queue that deserves nothing is overused."""
        attributes = self.attributes[queue.name]
        # Tolerant, and true of a queue that deserves nothing: both as in proportion.go.
        return attributes.deserved.less_equal(attributes.allocated, ZERO)

    def allocatable(self, queue: Queue, task: Task) -> bool:
        """Return whether the queue is open, and with the task stays within deserved in the requested dimensions."""
        return queue.is_open and self.attributes[queue.name].has_room_for(task.template.request)

    def preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        """Return whether the queue is open, and with all these tasks stays within deserved in the requested
        dimensions.
        """
        total = Resource()
        for task in tasks:
            total.add(task.template.request)
        return queue.is_open and self.attributes[queue.name].has_room_for(total)

    def job_enqueueable(self, job: Job) -> Vote:
        """Vote whether minResources + allocated + inqueue - elastic is within the real capability, and the queue is
        open.

        A Permit charges immediately
        (fix enqueue-charges-once: admission does).
        """
        queue = self._session.queue_of(job)
        if not queue.is_open:
            return Vote.REJECT
        minimum = job.pod_group.min_resources
        if minimum is None:
            return Vote.PERMIT
        attributes = self.attributes[queue.name]
        inqueue, elastic = self.attributes.promised_to(queue.name)
        future = minimum.clone().add(attributes.allocated).add(inqueue).sub_without_assert(elastic)
        fits, short = future.less_equal_with_dimension_and_resources_name(attributes.real_capability, minimum)
        if not fits:
            parts = queue_parts(attributes.allocated, inqueue, elastic)
            most = attributes.real_capability
            self._session.fit.admission.note_amounts(job.row, TooLittle(future, most, queue.name, parts))
            self._session.fit.remark(job, "queue resource quota insufficient", "insufficient", short)
            return Vote.REJECT
        # v1.15.1 charges while it votes: a later Reject of the tier leaves the charge standing to the session's end.
        if not self._charges_on_admission:
            self.job_enqueued(job)
        return Vote.PERMIT

    def _refused(self, rows: JobRows) -> BoolArray:
        """Answer `job_enqueueable` for many jobs, with the same operations."""
        columns, queues = self._session.snapshot.jobs, self._session.snapshot.queues
        minimum, of = columns.minimum.take(rows, axis=1), columns.queue.take(rows)
        closed = np.array([not queue.is_open for queue in queues])
        allocated, inqueue, elastic, room = (each[: len(minimum)] for each in self.attributes.promises())
        future = minimum + allocated.take(of, axis=1) + inqueue.take(of, axis=1) - elastic.take(of, axis=1)
        return closed.take(of) | exceeds(future, room.take(of, axis=1), minimum)

    def job_enqueued(self, job: Job) -> None:
        """Charge a job with its minResources minus the requests of gated pods."""
        minimum = job.pod_group.min_resources
        if minimum is not None:
            inqueue, _ = self.attributes.promised_to(job.pod_group.queue)
            inqueue.add(self._session.jobs.without_gated(job, minimum))

    def reclaimable(self, _: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """Return tasks of queues above their deserved amount, while they stay above."""
        allocations: dict[str, Resource] = {}
        victims: list[Task] = []
        for candidate in candidates:
            job = self._session.job_of(candidate)
            if job is None:
                continue
            attributes = self.attributes[job.pod_group.queue]
            if attributes.name not in allocations:
                allocations[attributes.name] = attributes.allocated.clone()
            allocated = allocations[attributes.name]
            # Not ordered: proportion.go takes victims in the order in which it is given them.
            if not allocated.less_equal(attributes.deserved, ZERO):
                # Only victims count: what stays does not lower the queue's total.
                allocated.sub_without_assert(candidate.template.request)
                victims.append(candidate)
        return victims, Vote.PERMIT

    def _find(self, task: Task) -> ProportionAttributes | None:
        job = self._session.job_of(task)
        if job is None:
            return None
        found = self._by_job[job.row] = self.attributes[job.pod_group.queue]
        return found

    def _on_allocate(self, task: Task, node: int) -> None:
        attributes = self._by_job.get(self._of_task[task.row]) or self._find(task)
        if attributes is not None:
            attributes.give(task.template.request)

    def _on_deallocate(self, task: Task, node: int) -> None:
        attributes = self._by_job.get(self._of_task[task.row]) or self._find(task)
        if attributes is not None:
            attributes.take(task.template.request)

    def gauges(self) -> QueueTables:
        """Return the numbers of each queue when the session opened."""
        return self.attributes.gauges()

    def amounts(self) -> QueueTables:
        """Return the amounts that Volcano has no metric for, when the session opened."""
        return self.attributes.amounts()

    def share_now(self, queue: str) -> float:
        """Return the shares by which queues are ordered now."""
        return self.attributes[queue].share

    def held_now(self, queue: str) -> Resource:
        """Return what the queue holds now."""
        return self.attributes[queue].allocated

    def verdicts(self) -> QueueTables:
        """Return which queues are overused as the session closes."""
        return self.attributes.overused()
