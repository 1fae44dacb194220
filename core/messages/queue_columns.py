"""Numbers of many queues: a column a metric, because a thousand queues are told of in every cycle."""

from __future__ import annotations

from math import isnan

from msgspec import Struct, field


class QueueColumns(Struct, frozen=True, gc=False):
    """`values[metric][i]` is the number of `queues[i]`; not-a-number where that queue has none of the kind.

    Metrics have Volcano's names without `volcano_queue_`; a scalar's is followed by its resource
    ("deserved_scalar_resources:nvidia.com/gpu"). cpu and scalars in milli-units, memory in bytes.
    """

    queues: list[str] = field(default_factory=list[str])
    values: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def by_queue(self) -> dict[str, dict[str, float]]:
        """Queue -> metric -> number."""
        names = list(self.values)
        rows = zip(*self.values.values(), strict=True) if names else ((),) * len(self.queues)
        return {
            queue: {name: value for name, value in zip(names, row, strict=True) if not isnan(value)}
            for queue, row in zip(self.queues, rows, strict=True)
        }

    def beside(self, other: QueueColumns) -> QueueColumns:
        """Both together; where both have a metric the other's counts. Queues may differ."""
        if not (self.queues and other.queues):
            return self if self.queues else other
        if self.queues == other.queues and not self.values.keys() & other.values.keys():
            return QueueColumns(self.queues, {**self.values, **other.values})
        queues = list(dict.fromkeys((*self.queues, *other.queues)))
        mine, theirs = self.by_queue(), other.by_queue()
        both = {queue: {**mine.get(queue, {}), **theirs.get(queue, {})} for queue in queues}
        metrics = dict.fromkeys((*self.values, *other.values))
        return QueueColumns(queues, {m: [both[queue].get(m, float("nan")) for queue in queues] for m in metrics})
