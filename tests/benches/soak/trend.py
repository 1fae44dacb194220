"""How fast a figure rises, and how sure that is: the median of all slopes, with its bounds (Theil 1950, Sen 1968).

No distribution of the noise is assumed, and outliers move nothing while they are fewer than a quarter. Samples that
follow each other are alike, which would make the bounds too narrow. So the median of each of twelve stretches stands
for it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Final

STRETCHES: Final = 12
DEVIATIONS: Final = 2.326
"""Of a normal distribution: 99 % lie below. So of a hundred figures that do not rise, one has a `low` above 0."""


@dataclass(frozen=True, slots=True)
class Trend:
    """What a second adds: the median slope, and its bounds, which are infinite for fewer than six stretches."""

    low: float
    slope: float
    high: float


def trend(samples: Sequence[tuple[float, float]]) -> Trend:
    """Return the trend of samples of time (s) and value, in the order of time. ValueError for fewer than two."""
    number = min(STRETCHES, len(samples))
    if number < 2:
        raise ValueError(f"{number} samples have no trend")
    cuts = [len(samples) * each // number for each in range(number + 1)]
    points = [_middle(samples[first:last]) for first, last in pairwise(cuts)]
    slopes = sorted((later - value) / (after - at) for (at, value), (after, later) in combinations(points, 2))
    # Kendall's statistic of as many points without a trend has this deviation; so many slopes lie beyond each bound.
    deviation = math.sqrt(number * (number - 1) * (2 * number + 5) / 18)
    beyond = int((len(slopes) - DEVIATIONS * deviation) / 2)
    if beyond < 1:
        return Trend(-math.inf, statistics.median(slopes), math.inf)
    return Trend(slopes[beyond - 1], statistics.median(slopes), slopes[-beyond])


def _middle(samples: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(at for at, _ in samples), statistics.median(value for _, value in samples)
