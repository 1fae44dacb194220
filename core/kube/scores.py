"""Kubernetes' scale of scores and its usual normalisation, in float64 that holds the int64 arithmetic exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pumice.core.kube.rows import FloatArray

MAX_NODE_SCORE = 100.0


def normalise(raw: FloatArray, weight: float, *, reverse: bool = False) -> FloatArray:
    """DefaultNormalizeScore over the candidates' raw scores, times the weight. Shape as `raw`.

    Raw scores are whole numbers from 0 to 2**40. 100 * raw / highest is truncated as Go's integer division does: the
    float quotient of two whole numbers below 2**47 never rounds up to the next whole number while it is at most 100.
    """
    highest = float(raw.max()) if raw.size else 0.0
    if highest == 0.0:
        return np.full(raw.shape, MAX_NODE_SCORE * weight if reverse else 0.0)
    scores: FloatArray = raw * MAX_NODE_SCORE
    np.divide(scores, highest, out=scores)
    np.floor(scores, out=scores)
    if reverse:
        np.subtract(MAX_NODE_SCORE, scores, out=scores)
    if weight != 1.0:
        np.multiply(scores, weight, out=scores)
    return scores
