# SPDX-License-Identifier: Apache-2.0
"""Figures of fairness: whether waiting was shared evenly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

SHORT_S: Final = 10.0
"""Jobs shorter than this count as this long, or a second's wait of a job of a second would say "slowed down twofold".

Feitelson and Rudolph, "Metrics and Benchmarking for Parallel Job Scheduling" (1998), take 10 seconds too.
"""


def bounded_slowdown(wait_s: float, run_s: float) -> float:
    """Return how many times as long a job took as it would have alone; at least 1."""
    return max(1.0, (wait_s + run_s) / max(run_s, SHORT_S))


def jain(shares: Sequence[float]) -> float | None:
    """Return Jain's index of fairness: 1 when all have the same, 1/n when one has all; None without members or amounts.

    Source: Jain, Chiu, Hawe, "A Quantitative Measure of Fairness" (DEC TR-301, 1984).
    """
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else None


def quantile(sorted_values: Sequence[float], part: float) -> float | None:
    """Return the value below which that part lies, interpolated between two values; None of none."""
    if not sorted_values:
        return None
    place = part * (len(sorted_values) - 1)
    low = int(place)
    high = min(low + 1, len(sorted_values) - 1)
    return sorted_values[low] + (sorted_values[high] - sorted_values[low]) * (place - low)
