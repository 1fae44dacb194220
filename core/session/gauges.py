"""A queue's numbers under the names of Volcano's metrics. Source: Volcano `metrics/queue.go`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.resources import Resource


class QueueGauges:
    """The gauges of one queue, without the prefix `volcano_queue_`, in the order in which a plugin sets them.

    A scalar that any earlier gauge of the queue named is set to 0 where a later one does not name it, as Volcano does.
    """

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
