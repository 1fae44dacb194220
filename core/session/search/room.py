"""Room for a request on many nodes at once. Source: Volcano `LessEqual`: l < r or |l - r| < 0.1 is l - r < 0.1."""

from __future__ import annotations

from functools import lru_cache
from math import ulp
from typing import TYPE_CHECKING

import numpy as np

from core.resources import MIN_RESOURCE

if TYPE_CHECKING:
    from core.session.points.nodes import FloatArray


@lru_cache(maxsize=4096)
def most_too_small(request: float) -> float:
    """The greatest float that a request does not fit into: request - column >= 0.1 up to it, and nowhere above.

    One comparison of a column in place of a difference and a comparison. Rounding is monotone, so there is one such
    float; it is sought by halves.
    """
    low, high = request - max(1.0, 2.0 * ulp(request)), request
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (middle, high) if request - middle >= MIN_RESOURCE else (low, middle)
    return low


@lru_cache(maxsize=1024)
def most_too_little(items: tuple[tuple[int, float], ...], height: int) -> FloatArray:
    """The same of a request by (dimension, value), [height, 1]: of what is not asked for nothing is too little."""
    limits: FloatArray = np.full((height, 1), -np.inf)
    for dimension, value in items:
        limits[dimension] = most_too_small(value)
    limits.flags.writeable = False
    return limits
