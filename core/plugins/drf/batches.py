"""Which candidates leave their jobs a share that is large enough, node by node, for many nodes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from pumice.core.plugins.drf.shares import Shares
    from pumice.core.session.points.batches import BoolArray, TaskBatch

SHARE_DELTA: Final = 0.000001


def keeps_its_share(shares: Shares, batch: TaskBatch, ours: float, *, only_victims_count: bool) -> BoolArray:
    """Whether each candidate's job, without it and those of its job before it on its node, has a dominant share of at
    least `ours`, [M]. `only_victims_count`: of those before it the ones that were found to.

    Subtracted one after the other: the floats come out as if task after task had been asked.
    """
    order, rank = batch.ranks()
    jobs = batch.job[order]
    requests = batch.facts.requests[batch.facts.template[batch.rows[order]]].T
    left = shares.allocated_of(jobs)
    keeps = np.empty(len(order), dtype=np.bool_)
    for place in range(int(rank.max(initial=-1)) + 1):
        at = np.flatnonzero(rank == place)
        if place:
            left[:, at] = left[:, at - 1]
        after = left[:, at]
        after[: len(requests)] -= requests[:, at]
        theirs = np.zeros(len(at))
        for dimension, total in shares.totals:
            np.maximum(theirs, after[dimension] / total, out=theirs)
        keeps[at] = (ours < theirs) | (np.abs(ours - theirs) <= SHARE_DELTA)
        left[:, at] = np.where(keeps[at], after, left[:, at]) if only_victims_count else after
    mask = np.empty(len(order), dtype=np.bool_)
    mask[order] = keeps & (jobs >= 0)
    return mask
