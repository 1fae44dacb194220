"""Queues' numbers under the names of Volcano's metrics. Source: Volcano `metrics/queue.go`.

A scalar that any earlier gauge of a queue named is set to 0 where a later one does not name it, as Volcano does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from core.messages.queue_columns import QueueColumns
from core.state.dimensions import CPU, MEMORY, PODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.state.columns import FloatArray
    from core.state.dimensions import Dimensions

BoolArray = npt.NDArray[np.bool_]


class GaugeColumns:
    """The gauges of all queues at once, in the order in which a plugin sets them: a cycle shows a thousand queues, and
    may not wait for it.
    """

    def __init__(self, dimensions: Dimensions, queues: Sequence[str]) -> None:
        self._dimensions = dimensions
        self._queues = list(queues)
        self._known: BoolArray | None = None
        self._values: dict[str, list[float]] = {}

    def put(
        self, metric: str, amounts: FloatArray, named: BoolArray | None = None, shown: BoolArray | None = None
    ) -> GaugeColumns:
        """`<metric>_milli_cpu`, `<metric>_memory_bytes`, `<metric>_scalar_resources:<name>`; returns self.

        Amounts, float64 [dimension, queue]. `named`: the scalars each queue names (None: those that are not 0).
        `shown` [queue]: the queues that have the metric at all (None: every one).
        """
        mask: BoolArray = amounts != 0.0 if named is None else named
        known_now = mask if shown is None else mask & shown
        self._known = known_now if self._known is None else self._known | known_now
        self._add(f"{metric}_milli_cpu", amounts[CPU], shown)
        self._add(f"{metric}_memory_bytes", amounts[MEMORY], shown)
        for dimension in range(PODS, len(amounts)):
            known: BoolArray = self._known[dimension]
            if known.any():
                name = f"{metric}_scalar_resources:{self._dimensions.names[dimension]}"
                values = np.where(mask[dimension], amounts[dimension], 0.0)
                self._add(name, values, known if shown is None else known & shown)
        return self

    def number(self, metric: str, values: npt.NDArray[Any], shown: BoolArray | None = None) -> GaugeColumns:
        """A plain number such as share or weight, [queue]; returns self."""
        self._add(metric, values, shown)
        return self

    def _add(self, name: str, values: npt.NDArray[Any], shown: BoolArray | None) -> None:
        seen = values if shown is None or shown.all() else np.where(shown, values, np.nan)
        self._values[name] = seen.astype(np.float64, copy=False).tolist()

    def columns(self) -> QueueColumns:
        """What was put."""
        return QueueColumns(self._queues, self._values)
