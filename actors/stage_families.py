"""Latencies by stage as a Prometheus histogram that takes thousands of values at once, as a storm of binds brings."""

from __future__ import annotations

from bisect import bisect_left
from math import inf
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import HistogramMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class StageFamilies(Collector):
    """`bounds`: upper ones of the buckets, rising."""

    def __init__(self, name: str, text: str, bounds: Sequence[float]) -> None:
        self._name = name
        self._text = text
        self._bounds = (*bounds, inf)
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def observe(self, stage: str, values: Iterable[float]) -> None:
        """Note values of a stage; none that are negative, which only clocks that disagree give."""
        counts = self._counts.setdefault(stage, [0] * len(self._bounds))
        total = 0.0
        for value in values:
            known = max(value, 0.0)
            counts[bisect_left(self._bounds, known)] += 1
            total += known
        self._sums[stage] = self._sums.get(stage, 0.0) + total

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """One family, a histogram a stage."""
        family = HistogramMetricFamily(self._name, self._text, labels=("stage",))
        for stage, counts in self._counts.items():
            below = 0
            buckets: list[tuple[str, float]] = []
            for bound, count in zip(self._bounds, counts, strict=True):
                below += count
                buckets.append(("+Inf" if bound == inf else str(bound), below))
            family.add_metric((stage,), buckets, self._sums[stage])
        yield family
