"""Queues' numbers under the names of Volcano's metrics. Source: Volcano `metrics/queue.go`.

A scalar that any earlier gauge of a queue named is set to 0 where a later one does not name it, as Volcano does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from core.state.dimensions import CPU, MEMORY, PODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.resources import Resource
    from core.state.columns import FloatArray
    from core.state.dimensions import Dimensions

BoolArray = npt.NDArray[np.bool_]


class QueueGauges:
    """The gauges of one queue, without the prefix `volcano_queue_`, in the order in which a plugin sets them."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self._known: dict[str, None] = {}

    def put(self, metric: str, resource: Resource) -> QueueGauges:
        """`<metric>_milli_cpu`, `<metric>_memory_bytes`, `<metric>_scalar_resources:<name>`; returns self."""
        scalars = resource.scalars or {}
        self._known.update(dict.fromkeys(scalars))
        self.values[f"{metric}_milli_cpu"] = resource.milli_cpu
        self.values[f"{metric}_memory_bytes"] = resource.memory
        for name in self._known:
            self.values[f"{metric}_scalar_resources:{name}"] = scalars.get(name, 0.0)
        return self

    def number(self, metric: str, value: float) -> QueueGauges:
        """A plain number such as share or weight; returns self."""
        self.values[metric] = value
        return self


class GaugeColumns:
    """The same for many queues at once: a cycle of a thousand queues shows them all, and may not wait for it."""

    def __init__(self, dimensions: Dimensions, count: int) -> None:
        self._dimensions = dimensions
        self._known: BoolArray = np.zeros((len(dimensions), count), dtype=np.bool_)
        self._names: list[str] = []
        self._columns: list[list[float]] = []
        self._sparse: list[tuple[str, list[float], list[int]]] = []

    def put(self, metric: str, amounts: FloatArray, named: BoolArray) -> GaugeColumns:
        """Amounts, float64 [dimension, queue]; `named`: the scalars that each queue names. Returns self."""
        self._known |= named
        self._add(f"{metric}_milli_cpu", amounts[CPU])
        self._add(f"{metric}_memory_bytes", amounts[MEMORY])
        for dimension in range(PODS, len(self._known)):
            known = self._known[dimension]
            if known.any():
                name = f"{metric}_scalar_resources:{self._dimensions.names[dimension]}"
                self._add_known(name, np.where(named[dimension], amounts[dimension], 0.0), known)
        return self

    def number(self, metric: str, values: FloatArray) -> GaugeColumns:
        """A plain number such as share or weight, [queue]; returns self."""
        self._add(metric, values)
        return self

    def _add(self, name: str, values: FloatArray) -> None:
        self._names.append(name)
        self._columns.append(values.tolist())

    def _add_known(self, name: str, values: FloatArray, known: BoolArray) -> None:
        if known.all():
            self._add(name, values)
        else:
            self._sparse.append((name, values.tolist(), np.flatnonzero(known).tolist()))

    def by(self, queues: Sequence[str]) -> dict[str, dict[str, float]]:
        """Gauges by queue; `queues` are the names of the columns."""
        names = self._names
        rows = [dict(zip(names, row, strict=True)) for row in zip(*self._columns, strict=True)]
        for name, values, known in self._sparse:
            for row in known:
                rows[row][name] = values[row]
        return dict(zip(queues, rows, strict=True))
