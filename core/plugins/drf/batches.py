"""Shares of many jobs with tasks taken away, for batches of candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from core.plugins.drf.shares import Shares
    from core.session.batches import FloatArray, TaskBatch


def shares_without(shares: Shares, batch: TaskBatch) -> FloatArray:
    """The dominant share of each candidate's job without it and those of its job before it on its node, [M].

    Subtracted one after the other, as for a list: the floats come out the same.
    """
    order, rank = batch.ranks()
    requests = batch.facts.requests[batch.facts.template[batch.rows[order]]].T
    left = shares.allocated_of(batch.job[order])
    for place in range(int(rank.max(initial=-1)) + 1):
        at = np.flatnonzero(rank == place)
        if place:
            left[:, at] = left[:, at - 1]
        left[: len(requests), at] -= requests[:, at]
    share = np.zeros(len(order))
    for dimension, total in shares.totals:
        np.maximum(share, left[dimension] / total, out=share)
    result = np.empty(len(order))
    result[order] = share
    return result
