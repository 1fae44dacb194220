"""How MindCluster scores nodes together. Source: Volcano `devices/ascend/310p/vnpu` (ScoreBatchNodes)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pumice.core.devices.family import FloatArray


def shares(rank: FloatArray, high: float) -> FloatArray:
    """What candidates get by their `rank`: the one with the fewest idle cores `high`; where pods would get fewer CPUs,
    those before the first that gives all get it, and that one twice as much (ScoreBatchNodes).
    """
    scores = np.zeros(len(rank))
    if not len(rank):
        return scores
    idle, lowered = np.floor(rank / 2.0), rank % 2.0 == 1.0
    order = np.argsort(idle, kind="stable")
    if not lowered.any():
        scores[order[0]] = high
        return scores
    ahead = lowered[order].cumprod().astype(np.bool_)
    scores[order[ahead]] = high
    if not ahead.all():
        scores[order[int(ahead.sum())]] = 2.0 * high
    return scores
