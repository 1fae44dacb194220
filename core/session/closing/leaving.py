"""Members that are on their way out but still have a node. Source: Volcano after v1.15.1 (fix terminating-members)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pumice.core.life.task import SCHEDULED_STATUSES, TaskStatus

if TYPE_CHECKING:
    from pumice.core.session.session import Session


def leaving(session: Session) -> npt.NDArray[np.int64]:
    """How many releasing tasks with a node each job has, by job row."""
    tasks = session.snapshot.tasks
    theirs = tasks.job[(tasks.status == TaskStatus.RELEASING) & (tasks.node >= 0) & (tasks.job >= 0)]
    return np.bincount(theirs, minlength=len(session.snapshot.jobs.phase)).astype(np.int64)


def only_waits(session: Session) -> npt.NDArray[np.bool_]:
    """Whether a job has its minimum as long as its leaving members are there, and nothing of it waits for a place; by
    row.
    """
    columns, gone = session.snapshot.jobs, leaving(session)
    scheduled = np.add.reduce(columns.counts[list(SCHEDULED_STATUSES)])
    waits = columns.counts[TaskStatus.PENDING] + columns.counts[TaskStatus.PIPELINED]
    found: npt.NDArray[np.bool_] = (gone > 0) & (scheduled + gone >= columns.min_member) & (waits == 0)
    return found
