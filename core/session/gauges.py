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
        self._known = known = known_now if self._known is None else self._known | known_now
        seen = np.where(mask, amounts, 0.0)
        seen[~known] = np.nan
        seen[:PODS] = amounts[:PODS]
        if shown is not None:
            seen[:, ~shown] = np.nan
        lines: list[list[float]] = seen.tolist()
        self._values[f"{metric}_milli_cpu"], self._values[f"{metric}_memory_bytes"] = lines[CPU], lines[MEMORY]
        anybody: list[bool] = np.logical_or.reduce(known, axis=1).tolist()
        for dimension in range(PODS, len(lines)):
            if anybody[dimension]:
                self._values[f"{metric}_scalar_resources:{self._dimensions.names[dimension]}"] = lines[dimension]
        return self

    def number(self, metric: str, values: npt.NDArray[Any], shown: BoolArray | None = None) -> GaugeColumns:
        """A plain number such as share or weight, [queue]; returns self."""
        seen = values if shown is None else np.where(shown, values, np.nan)
        self._values[metric] = seen.astype(np.float64, copy=False).tolist()
        return self

    def columns(self) -> QueueColumns:
        """What was put."""
        return QueueColumns(self._queues, self._values)
