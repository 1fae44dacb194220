# SPDX-License-Identifier: Apache-2.0
"""What the jobs of each queue have and ask for, kept from session to session: a row that changes moves its share.

To add up 10,000 jobs for every cycle took a tenth of it. The sums are floats, and Volcano adds them job by job; in
another order they may differ in the last bits. So they are kept only while all amounts are whole numbers (milli-cores,
bytes and counts are) and no sum reaches 2**53: then floats are exact in any order. Else there are none, and a session
adds up anew in job order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from pumice.core.life.task import ALLOCATED_STATUSES, total_of

if TYPE_CHECKING:
    from pumice.core.state.dimensions import FloatArray
    from pumice.core.state.kept_columns import Arrays

    BoolArray = npt.NDArray[np.bool_]
    IntArray = npt.NDArray[np.int32]

LARGEST: Final = 2.0**53
MANY: Final = 64
"""When more rows have changed it is quicker to add up anew."""
TASKS_LINE: Final = -2
"""The line of shares and sums that counts tasks of allocated class; before it, amounts; behind it, jobs."""


def like(arrays: Arrays) -> Arrays:
    """Return room for the shares of each job, and no sums yet."""
    height, count = arrays["allocated"].shape
    shares = np.zeros((2 * height + 2, count))
    return {"shares": shares, "share_of": np.zeros(count, dtype=np.int32), "queue_sums": np.zeros((0, 0))}


def shares_of(allocated: FloatArray, pending: FloatArray, counts: IntArray, known: BoolArray) -> FloatArray:
    """Return what jobs add to the sums of their queues, [line, job]: what is allocated, and that with what is pending,
    each by dimension; tasks of allocated class; the job itself. A job that is not in the session adds nothing.
    `allocated`, `pending` [dimension, job]; `counts` [status, job].
    """
    height = len(allocated)
    found = np.empty((2 * height + 2, len(known)))
    found[:height] = allocated
    np.add(allocated, pending, out=found[height:-2])
    found[TASKS_LINE] = total_of(counts, ALLOCATED_STATUSES)
    found[-1] = 1.0
    found *= known
    return found


def update(arrays: Arrays, at: slice | npt.NDArray[np.intp], now: FloatArray, where: IntArray, queues: int) -> None:
    """Bring shares and sums up to date, in which these rows may be old. `now`: their shares; `where`: their queues."""
    shares, of, sums = arrays["shares"], arrays["share_of"], arrays["queue_sums"]
    if isinstance(at, slice) or len(at) > MANY or sums.shape[1] != queues:
        shares[:, at], of[at] = now, where
        now, sums = shares, _added_up(shares, of, queues)
    else:
        before, left = shares[:, at], of[at].tolist()
        for place, (old, new) in enumerate(zip(left, where.tolist(), strict=True)):
            sums[:, old] -= before[:, place]
            sums[:, new] += now[:, place]
        shares[:, at], of[at] = now, where
    # Not a whole number, or a large one: not exact in any order.
    is_exact = not np.count_nonzero(now - np.floor(now)) and np.abs(sums).max(initial=0.0) < LARGEST
    arrays["queue_sums"] = sums if is_exact else np.zeros((0, 0))


def _added_up(shares: FloatArray, of: npt.NDArray[np.int32], queues: int) -> FloatArray:
    if not queues:
        return np.zeros((len(shares), 0))
    # Every queue has a bin in every line, so that one pass adds up all lines.
    bins = np.arange(len(shares))[:, None] * queues + of
    sums = np.bincount(bins.ravel(), weights=shares.ravel(), minlength=len(shares) * queues)
    return sums.astype(np.float64, copy=False).reshape(len(shares), queues)
