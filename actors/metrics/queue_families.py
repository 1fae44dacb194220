"""The numbers of every queue as Prometheus families, made when somebody asks.

Names as in Volcano (`metrics/queue.go`); guarantee, inqueue and elastic, which Volcano has no metric for, are named
alike.
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Final

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from pumice.core.messages.queue_tables import QueueTables, readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.core.messages.queue_columns import QueueColumns

AMOUNTS: Final = {
    "allocated": "what the tasks of a queue hold",
    "request": "what the tasks of a queue hold and its pending tasks ask for",
    "deserved": "what a queue deserves",
    "capacity": "the most a queue may hold by its own capability",
    "real_capacity": "the most a queue may hold once other queues' guarantees are taken off",
    "guarantee": "what is kept for a queue",
    "inqueue": "what admitted jobs of a queue were promised and do not hold yet",
    "elastic": "what jobs of a queue hold beyond their minimum",
}
NUMBERS: Final = {
    "share": "how much of what it deserves a queue holds",
    "weight": "the weight of a queue",
    "overused": "whether a queue holds what it deserves or more",
}
CPU, MEMORY, SCALARS = "milli_cpu", "memory_bytes", "scalar_resources"


class QueueFamilies(Collector):
    """Shows the newest tables. A queue that is gone is shown no more; tables without queues change nothing."""

    def __init__(self) -> None:
        self._newest: tuple[QueueTables, ...] = ()

    def show(self, tables: tuple[QueueTables, ...]) -> None:
        """From now on these."""
        if any(each.queues for each in tables):
            self._newest = tables

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """A family a metric; without any queue they are empty."""
        columns = readable(self._newest)
        for amount, what in AMOUNTS.items():
            for unit in (CPU, MEMORY):
                yield _plain(columns, f"{amount}_{unit}", f"{unit.replace('_', ' ')}: {what}")
            yield _scalars(columns, f"{amount}_{SCALARS}", f"other resources: {what}")
        for number, what in NUMBERS.items():
            yield _plain(columns, number, what)


def _plain(columns: QueueColumns, metric: str, text: str) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"volcano_queue_{metric}", text, labels=("queue_name",))
    for queue, value in _numbers(columns, metric):
        family.add_metric((queue,), value)
    return family


def _scalars(columns: QueueColumns, metric: str, text: str) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"volcano_queue_{metric}", text, labels=("queue_name", "resource"))
    for name in columns.values:
        known, _, resource = name.partition(":")
        if known == metric:
            for queue, value in _numbers(columns, name):
                family.add_metric((queue, resource), value)
    return family


def _numbers(columns: QueueColumns, metric: str) -> Iterator[tuple[str, float]]:
    values = columns.values.get(metric, ())
    return ((queue, value) for queue, value in zip(columns.queues, values, strict=False) if not isnan(value))
