# SPDX-License-Identifier: Apache-2.0
"""Queues' numbers as a cycle has them, made readable under the names of Volcano's metrics on demand. Source:
Volcano `metrics/queue.go`.
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from pumice.core.messages.message import Message
from pumice.core.objects.metadata import Object
from pumice.core.resources.amounts import MEMORY as MEMORY_NAME
from pumice.core.resources.amounts import PODS as PODS_NAME
from pumice.core.resources.lists import is_counted_whole
from pumice.core.state.dimensions import CPU, MEMORY, PODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.core.state.dimensions import FloatArray

# --- Gauges as people read them

Amounts = dict[str, float]
SCALARS: Final = "scalar_resources:"
WHOLE: Final = PODS_NAME
"""The resource that every pod takes one of, and no queue borrows."""
PLAIN: Final = {"milli_cpu": "cpu", "memory_bytes": "memory"}
UNLIMITED: Final = 2.0**62
"""From here on Volcano means no limit at all."""
LIMITS: Final = {"guarantee": "guarantee", "deserved": "deserved", "capability": "real_capacity"}
"""Names of a queue's gauges."""


def told(resource: str, value: float) -> float:
    """Return an amount of the scheduler's units in cores, bytes or pieces."""
    return value if _as_it_is(resource) else value / 1000


def reckoned(resource: str, value: float) -> float:
    """Return an amount in the scheduler's units, the inverse of `told`."""
    return value if _as_it_is(resource) else value * 1000


def _as_it_is(resource: str) -> bool:
    return resource == MEMORY_NAME or is_counted_whole(resource)


def gauged(gauges: Mapping[str, float], what: str) -> Amounts:
    """Return one of a queue's amounts, without zeroes and unlimited dimensions."""
    found: Amounts = {}
    for gauge, value in gauges.items():
        resource = gauge.removeprefix(f"{what}_")
        if resource == gauge or not 0 < value < UNLIMITED:
            continue
        name = PLAIN.get(resource, resource.removeprefix(SCALARS))
        found[name] = told(name, value)
    return found


def borrowed(allocated: Mapping[str, float], deserved: Mapping[str, float]) -> Amounts:
    """Return what is allocated beyond what is deserved, without pods."""
    more = {name: value - deserved.get(name, 0.0) for name, value in allocated.items()}
    return {name: value for name, value in more.items() if value > 0 and name != WHOLE}


def standing_amounts(gauges: Mapping[str, float]) -> Object:
    """Return all amounts of the gauges: `share` is None where no plugin computes one."""
    said = {name: gauged(gauges, gauge) for name, gauge in LIMITS.items()}
    allocated, deserved = gauged(gauges, "allocated"), said["deserved"]
    more = borrowed(allocated, deserved) if deserved else {}
    return {"share": gauges.get("share"), **said, "allocated": allocated, "borrowed": more}


# --- Cards
# Columns, because they are mostly not read.


class PodOnCard(Struct, frozen=True, gc=False):
    """The share of a card that a pod has: MiB, and cores in per cent."""

    card: int
    pod: str
    memory: int
    cores: int


class CardTable(Struct, frozen=True, gc=False):
    """Cards by place: their `nodes` and names; `numbers` float64 [4, card]: sharers, MiB and cores (per cent) in use,
    and the MiB of the card.
    """

    nodes: list[str] = []
    cards: list[str] = []
    numbers: bytes = b""
    pods: tuple[PodOnCard, ...] = ()

    def columns(self) -> FloatArray:
        """Return the numbers."""
        return np.frombuffer(self.numbers, dtype=np.float64).reshape(4, len(self.cards))


# --- Queues, a column for each metric
# Columns, because every cycle reports a thousand queues.


class QueueColumns(Struct, frozen=True, gc=False):
    """Numbers of queues by metric. `values[metric][i]` is the number of `queues[i]`; not-a-number where that queue has
    none.

    Metrics have Volcano's names without `volcano_queue_`; a scalar's is followed by its resource
    ("deserved_scalar_resources:nvidia.com/gpu"). cpu and scalars in milli-units, memory in bytes.
    """

    queues: list[str] = field(default_factory=list[str])
    values: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def by_queue(self) -> dict[str, dict[str, float]]:
        """Return queue -> metric -> number."""
        names = list(self.values)
        rows = zip(*self.values.values(), strict=True) if names else ((),) * len(self.queues)
        return {
            queue: {name: value for name, value in zip(names, row, strict=True) if not isnan(value)}
            for queue, row in zip(self.queues, rows, strict=True)
        }

    def beside(self, other: QueueColumns) -> QueueColumns:
        """Return both together; where both have a metric the other's counts. Queues may differ."""
        if not (self.queues and other.queues):
            return self if self.queues else other
        if self.queues == other.queues and not self.values.keys() & other.values.keys():
            return QueueColumns(self.queues, {**self.values, **other.values})
        queues = list(dict.fromkeys((*self.queues, *other.queues)))
        mine, theirs = self.by_queue(), other.by_queue()
        both = {queue: {**mine.get(queue, {}), **theirs.get(queue, {})} for queue in queues}
        metrics = dict.fromkeys((*self.values, *other.values))
        return QueueColumns(queues, {m: [both[queue].get(m, float("nan")) for queue in queues] for m in metrics})


# --- Shares of jobs and namespaces
# Columns, because they are mostly not read.


class JobShares(Struct, frozen=True, gc=False):
    """Shares of jobs. `jobs` by "namespace/name" and `of_jobs` float64 [job], `namespaces` and `of_namespaces` float64
    [namespace]: their largest part of any resource of the cluster. Empty where no plugin computes it.
    """

    jobs: list[str] = []
    of_jobs: bytes = b""
    namespaces: list[str] = []
    of_namespaces: bytes = b""

    def by_job(self) -> FloatArray:
        """Return the shares of jobs."""
        return np.frombuffer(self.of_jobs, dtype=np.float64)

    def by_namespace(self) -> FloatArray:
        """Return the shares of namespaces."""
        return np.frombuffer(self.of_namespaces, dtype=np.float64)


BoolArray = npt.NDArray[np.bool_]


class Table(Struct, frozen=True, gc=False):
    """One metric of all queues. `values`: float64 [dimension, queue], [queue] where the metric is one number.

    `named` bool [dimension, queue]: the scalars each queue names (None: those that are not 0). `shown` bool [queue]:
    the queues that have the metric at all (None: every one).
    """

    metric: str
    values: bytes
    named: bytes | None = None
    shown: bytes | None = None
    single: bool = False


class QueueTables(Struct, frozen=True, gc=False):
    """The gauges of all queues, in the order in which a plugin sets them, as bytes: a cycle reports a thousand queues,
    and few are read.

    A scalar that any earlier gauge of a queue named is set to 0 where a later one does not name it, as Volcano does.
    """

    dimensions: list[str]
    queues: list[str]
    tables: tuple[Table, ...] = ()

    def put(
        self, metric: str, amounts: FloatArray, named: BoolArray | None = None, shown: BoolArray | None = None
    ) -> QueueTables:
        """Add `<metric>_milli_cpu`, `<metric>_memory_bytes` and `<metric>_scalar_resources:<name>` (see Table)."""
        return self._with(Table(metric, amounts.tobytes(), _bytes(named), _bytes(shown)))

    def number(self, metric: str, values: npt.NDArray[Any], shown: BoolArray | None = None) -> QueueTables:
        """Add a plain number such as share or weight, [queue]."""
        plain = values.astype(np.float64, copy=False)
        return self._with(Table(metric, plain.tobytes(), None, _bytes(shown), single=True))

    def _with(self, table: Table) -> QueueTables:
        return QueueTables(self.dimensions, self.queues, (*self.tables, table))

    def then(self, later: QueueTables) -> QueueTables:
        """Return both in one, as if one plugin had set these gauges and then the later ones, of the same queues."""
        return QueueTables(later.dimensions, self.queues, (*self.tables, *later.tables))

    def columns(self, metric: str = "") -> QueueColumns:
        """Return the tables metric by metric; of two for one metric, the later one where it is shown. `metric`: only
        those whose metrics begin so.
        """
        values: dict[str, list[float]] = {}
        known: BoolArray = np.zeros((1, len(self.queues)), dtype=np.bool_)
        for table in self.tables if self.queues else ():
            amounts = np.frombuffer(table.values).reshape(-1, len(self.queues))
            shown = np.frombuffer(table.shown, dtype=np.bool_) if table.shown else np.ones(len(self.queues), np.bool_)
            is_asked = table.metric.startswith(metric)
            if table.single and is_asked:
                _set(values, table.metric, np.where(shown, amounts[0], np.nan).tolist())
            if table.single:
                continue
            mask = amounts != 0.0 if table.named is None else _mask(table.named, amounts)
            known = _as_high(known, len(mask)) | (mask & shown)
            if not is_asked:
                continue
            seen = np.where(mask, amounts, 0.0)
            seen[~known] = np.nan
            seen[:PODS] = amounts[:PODS]
            seen[:, ~shown] = np.nan
            self._name(table.metric, seen, known, values)
        return QueueColumns(self.queues, values)

    def _name(self, metric: str, seen: FloatArray, known: BoolArray, values: dict[str, list[float]]) -> None:
        lines: list[list[float]] = seen.tolist()
        _set(values, f"{metric}_milli_cpu", lines[CPU])
        _set(values, f"{metric}_memory_bytes", lines[MEMORY])
        has_any: list[bool] = np.logical_or.reduce(known, axis=1).tolist()
        for dimension in range(PODS, len(lines)):
            if has_any[dimension]:
                _set(values, f"{metric}_scalar_resources:{self.dimensions[dimension]}", lines[dimension])


class QueuesMeasured(Message, frozen=True):
    """The gauges of all queues after a cycle, the use of each card, and each job's share of the cluster."""

    tables: tuple[QueueTables, ...] = ()
    cards: CardTable = CardTable()
    shares: JobShares = JobShares()


def readable(tables: Iterable[QueueTables], metric: str = "") -> QueueColumns:
    """Return all tables together, or those whose metrics begin so; where two have a metric the later one counts."""
    found = QueueColumns()
    for each in tables:
        found = found.beside(each.columns(metric))
    return found


def _as_high(known: BoolArray, dimensions: int) -> BoolArray:
    more = dimensions - len(known)
    return np.vstack((known, np.zeros((more, known.shape[1]), dtype=np.bool_))) if more > 0 else known[:dimensions]


def _set(values: dict[str, list[float]], metric: str, line: list[float]) -> None:
    before = values.get(metric)
    if before is not None:
        line = [was if isnan(number) else number for was, number in zip(before, line, strict=True)]
    values[metric] = line


def _bytes(mask: BoolArray | None) -> bytes | None:
    return None if mask is None else mask.tobytes()


def _mask(named: bytes, amounts: FloatArray) -> BoolArray:
    return np.frombuffer(named, dtype=np.bool_).reshape(amounts.shape)
