# SPDX-License-Identifier: Apache-2.0
"""Jobs about which a session has nothing to decide and nothing to write, as long as it does not touch them.

On a full cluster most jobs run, and their status says so. The close of a session looks at all others. A job is calm if
no task of it waits for a place, its PodGroup says how many tasks run or have ended, its phase follows from these, and
the gang plugin has said that it is ready. All of that follows from the job's own row, so a kept row stays calm until
the row changes (core/state/kept_columns.py).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from pumice.core.life.pod_group import AFTER_FINDING, finding
from pumice.core.life.task import COMPLETED_STATUSES, SCHEDULED_STATUSES, TaskStatus, total_of

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int32]
NO_JOB: Final = np.False_
"""Unschedulable jobs: no session has found one yet."""
RUNNING: Final[int] = TaskStatus.RUNNING
SUCCEEDED, FAILED = TaskStatus.SUCCEEDED, TaskStatus.FAILED
WAITING: Final = (TaskStatus.ALLOCATED, TaskStatus.PENDING, TaskStatus.PIPELINED)
MANY: Final = 256
OTHER_PHASES: Final = frozenset({"terminating-members", "min-member-zero", "task-minimums-count"})
"""Fixes under which a phase follows from more than the row: no job counts as calm."""


def are_many(jobs: int) -> bool:
    """Return whether there are so many jobs that to find out which are calm costs less than to look at all of them."""
    return jobs >= MANY


def calm(
    counts: IntArray, least: IntArray, says_ready: BoolArray, phase: npt.NDArray[np.int8], *told: IntArray
) -> BoolArray:
    """Return which of some jobs are calm. `counts` [status, job] of their tasks; `least`: their minimums; `says_ready`:
    whether a job is ready and says so; `phase` now; `told`: the phase, the running, succeeded and failed tasks that its
    status says.
    """
    completed, scheduled = total_of(counts, COMPLETED_STATUSES), total_of(counts, SCHEDULED_STATUSES)
    found = finding(counts[RUNNING], scheduled, completed, least, NO_JOB)
    is_calm: BoolArray = (AFTER_FINDING[phase, found] == phase) & (total_of(counts, WAITING) == 0)
    for now, said in zip((phase, counts[RUNNING], counts[SUCCEEDED], counts[FAILED]), told, strict=True):
        is_calm &= now == said
    is_calm &= says_ready | (np.add.reduce(counts) == 0)
    return is_calm
