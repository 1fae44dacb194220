# SPDX-License-Identifier: Apache-2.0
"""Jobs about which a session has nothing to decide and nothing to write, as long as it does not touch them.

On a full cluster most jobs run, and their status says so. The close of a session looks at all others. A job is calm if
no task of it waits for a place, its PodGroup says how many tasks run or have ended, its phase follows from these, and
the gang plugin has said that it is ready. All of that follows from the job's own row, so a kept row stays calm until
the row changes (core/state/kept_columns.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from pumice.core.life.pod_group import AFTER_FINDING, finding
from pumice.core.life.task import COMPLETED_STATUSES, SCHEDULED_STATUSES, TaskStatus

if TYPE_CHECKING:
    from pumice.core.state.kept_columns import Arrays

RUNNING: Final[int] = TaskStatus.RUNNING
SUCCEEDED, FAILED = TaskStatus.SUCCEEDED, TaskStatus.FAILED
WAITING: Final = (TaskStatus.ALLOCATED, TaskStatus.PENDING, TaskStatus.PIPELINED)
MANY: Final = 256
OTHER_PHASES: Final = frozenset({"terminating-members", "min-member-zero", "task-minimums-count"})
"""Fixes under which a phase follows from more than the row: no job counts as calm."""


def are_many(jobs: int) -> bool:
    """Return whether there are so many jobs that to find out which are calm costs less than to look at all of them."""
    return jobs >= MANY


def calm(arrays: Arrays, at: slice | npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Return which of the jobs in these rows of a table's columns are calm."""
    counts, phase = arrays["counts"][:, at], arrays["phase"][at]
    completed = np.add.reduce(counts[list(COMPLETED_STATUSES)])
    scheduled = np.add.reduce(counts[list(SCHEDULED_STATUSES)])
    found = finding(counts[RUNNING], scheduled, completed, arrays["min_member"][at], np.zeros(len(phase), np.bool_))
    told = np.stack((phase, counts[RUNNING], counts[SUCCEEDED], counts[FAILED]))
    stays = (AFTER_FINDING[phase, found] == phase) & np.logical_and.reduce(told == arrays["reported"][:, at])
    says_ready = (arrays["readiness"][at] > 0) & arrays["announced"][at]
    is_calm: npt.NDArray[Any] = stays & (says_ready | (np.add.reduce(counts) == 0))
    is_calm &= np.add.reduce(counts[list(WAITING)]) == 0
    return is_calm
