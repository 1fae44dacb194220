"""A Prometheus histogram that is cheap to fill: a cycle brings a value for every plugin, a storm of binds thousands."""

from __future__ import annotations

from bisect import bisect_left
from math import inf
from time import time
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import HistogramMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class _Histogram:
    """One of a family. `counts`: values by bucket, above the bucket before it; `created`: seconds since the epoch."""

    __slots__ = ("counts", "created", "total")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * buckets
        self.total = 0.0
        self.created = time()


class HistogramFamily(Collector):
    """A histogram for every combination of labels. `bounds`: upper ones of the buckets, rising."""

    def __init__(self, name: str, text: str, bounds: Sequence[float], labels: tuple[str, ...] = ()) -> None:
        self._name = name
        self._text = text
        self._labels = labels
        self._bounds = (*bounds, inf)
        self._histograms: dict[tuple[str, ...], _Histogram] = {}
        if not labels:
            self._begin(())  # shown before anything was observed

    def observe(self, values: Iterable[float], *labels: str) -> None:
        """Note values; none that are negative, which only clocks that disagree give."""
        histogram, bounds = self._histograms.get(labels) or self._begin(labels), self._bounds
        for value in values:
            known = value if value > 0.0 else 0.0
            histogram.counts[bisect_left(bounds, known)] += 1
            histogram.total += known

    def _begin(self, labels: tuple[str, ...]) -> _Histogram:
        begun = self._histograms[labels] = _Histogram(len(self._bounds))
        return begun

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """One family; the time at which each of its histograms began stands after them."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        for labels, histogram in self._histograms.items():
            below = 0
            buckets: list[tuple[str, float]] = []
            for bound, count in zip(self._bounds, histogram.counts, strict=True):
                below += count
                buckets.append(("+Inf" if bound == inf else str(bound), below))
            family.add_metric(labels, buckets, histogram.total)
        for labels, histogram in self._histograms.items():
            named = dict(zip(self._labels, labels, strict=True))
            family.add_sample(f"{self._name}_created", named, histogram.created)
        yield family
