"""What proportion knows of a queue: numbers, gathered for all queues at once, and made into Resources when somebody
asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pumice.core.messages.queue_tables import QueueTables
from pumice.core.plugins.proportion.limits import limits_of
from pumice.core.plugins.proportion.water_fill import Basin, fill
from pumice.core.resources import CPU, MEMORY, MIN_RESOURCE, PODS, Resource
from pumice.core.session.demand import QueueDemand
from pumice.core.state.derived import Like, derived
from pumice.core.state.sources import QUEUE_LIMITS

if TYPE_CHECKING:
    from pumice.core.session.session import Session
    from pumice.core.state.columns import FloatArray
    from pumice.core.state.sources import QueueLimits

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
    _share: float | None = None  # until somebody asks
    _due: Due | None = None  # it never changes

    def give(self, request: Resource) -> None:
        """The queue got room for a task."""
        self.allocated.add(request)
        self._share = None

    def take(self, request: Resource) -> None:
        """A task of the queue lost its room."""
        self.allocated.sub_without_assert(request)
        self._share = None

    @property
    def share(self) -> float:
        """The largest allocated / deserved over the dimensions that are deserved."""
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
        """allocated (None: as it is now) + request <= deserved in what is requested, exactly; pods are ignored.

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
    """What each queue deserves, float64 [dimension, queue]; `filled`: whether anything was poured (some queue had a
    weight); `named` bool [dimension, queue]: every scalar of the cluster and of the queue's guarantee, be it with 0.
    """

    deserved: FloatArray
    filled: bool
    named: npt.NDArray[np.bool_]


@derived(QUEUE_LIMITS, bound=1)
def _pour(known: QueueLimits, asked: Like[tuple[FloatArray, npt.NDArray[np.bool_]]]) -> Poured:
    """`asked`: what each queue asks for, float64 [dimension, queue], and which have a job at all, bool [queue]."""
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
    """Queue -> its attributes, made when somebody first asks; KeyError when it has no job."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._dims = session.dims
        self._limits = limits_of(session)
        self._demand = QueueDemand(session)
        self._rows = {queue.name: row for row, queue in enumerate(session.snapshot.queues)}
        self._promised: dict[str, tuple[Resource, Resource]] = {}
        request, present = self._demand.request, self._demand.present
        self._poured = _pour(session, Like((request.tobytes(), present.tobytes()), (request, present)))

    def _shares(self) -> FloatArray:
        deserved = self._poured.deserved
        parts = np.zeros(deserved.shape)
        np.divide(self._demand.allocated, deserved, out=parts, where=deserved >= MIN_RESOURCE)
        shares: FloatArray = parts.max(axis=0, initial=0.0)
        return shares

    def gauges(self) -> QueueTables:
        """Volcano's gauges, as they were when the session opened.

        A queue without jobs has only what it has allocated and asks for: nothing.
        """
        demand, busy = self._demand, self._demand.present
        tables = self._tables().put("allocated", demand.allocated).put("request", demand.request)
        tables = tables.number("weight", self._limits.weight, busy)
        deserved, filled, named = self._poured
        return tables.put("deserved", deserved, named, busy).number("share", self._shares(), busy) if filled else tables

    def amounts(self) -> QueueTables:
        """What proportion has no metric for, of every queue."""
        demand, limits = self._demand, self._limits
        tables = self._tables().put("guarantee", limits.guarantee, limits.guaranteed)
        tables = tables.put("real_capacity", limits.real, np.isfinite(limits.real))
        return tables.put("inqueue", demand.inqueue).put("elastic", demand.elastic)

    def overused(self) -> QueueTables:
        """1 for the queues that have all they deserve now, 0 for the others that have a job."""
        allocated = self._demand.allocated.copy()
        for name, made in self.items():
            for dimension, value in self._dims.items(made.allocated):
                if dimension < len(allocated):  # what a queue deserves names nothing newer
                    allocated[dimension, self._rows[name]] = value
        full: npt.NDArray[np.bool_] = np.logical_and.reduce(self._poured.deserved - allocated < MIN_RESOURCE)
        return self._tables().number("overused", full, self._demand.present)

    def _tables(self) -> QueueTables:
        return QueueTables(self._dims.names, list(self._rows))

    def promised_to(self, name: str) -> tuple[Resource, Resource]:
        """What admitted jobs of a queue have not got yet (inqueue), to be charged in place, and what it has beyond its
        jobs' minimums (elastic). Asked for at admissions only.
        """
        found = self._promised.get(name)
        if found is None:
            row, demand = self._rows[name], self._demand
            found = self._promised[name] = self._resource(demand.inqueue, row), self._resource(demand.elastic, row)
        return found

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
        """Pouring names every scalar of the cluster and of the guarantee, be it with 0."""
        deserved, filled, named = self._poured
        if not filled:
            return Resource()
        values: list[float] = deserved[:, row].tolist()
        named_here: list[bool] = named[:, row].tolist()
        told = zip(self._dims.names, values, named_here, strict=False)
        return Resource(values[0], values[1], {name: value for name, value, is_named in told if is_named} or None)
