# SPDX-License-Identifier: Apache-2.0
"""The life cycle of a task: states, triggers and the one table that joins them.

States and their sets are Volcano's (`pkg/scheduler/api/types.go`); Volcano itself checks no transition, the table is
Pumice's.
"""

from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pumice.core.life.cycle import LifeCycle


class TaskStatus(IntEnum):
    """Status of a task as the scheduler sees it; the integer is the value in the status column (int8)."""

    PENDING = 0
    ALLOCATED = 1
    PIPELINED = 2
    BINDING = 3
    BOUND = 4
    RUNNING = 5
    RELEASING = 6
    SUCCEEDED = 7
    FAILED = 8
    UNKNOWN = 9

    @property
    def label(self) -> str:
        """Return the name Volcano prints, e.g. in ``5 Pending``."""
        return LABELS[self]


LABELS: Final = tuple(s.name.capitalize() for s in TaskStatus)
COUNT: Final = len(TaskStatus)
STATUSES: Final = tuple(TaskStatus)
"""By number: a column holds numbers."""

ALLOCATED_STATUSES: Final = (TaskStatus.BOUND, TaskStatus.BINDING, TaskStatus.RUNNING, TaskStatus.ALLOCATED)
READY_STATUSES: Final = (*ALLOCATED_STATUSES, TaskStatus.SUCCEEDED)
SCHEDULED_STATUSES: Final = (TaskStatus.RUNNING, TaskStatus.BOUND, TaskStatus.FAILED, TaskStatus.SUCCEEDED)
COMPLETED_STATUSES: Final = (TaskStatus.FAILED, TaskStatus.SUCCEEDED)
ENDED_PHASES: Final = tuple(s.name.capitalize() for s in reversed(COMPLETED_STATUSES))
"""The phases of the API in which a pod has ended for good: `Succeeded` and `Failed`."""
PREEMPTABLE_STATUSES: Final = (TaskStatus.BOUND, TaskStatus.RUNNING)

IS_ALLOCATED: Final = tuple(s in ALLOCATED_STATUSES for s in TaskStatus)
IS_READY: Final = tuple(s in READY_STATUSES for s in TaskStatus)


def total_of(counts: npt.NDArray[np.int32], statuses: tuple[TaskStatus, ...]) -> npt.NDArray[np.int32]:
    """Return how many tasks of these statuses each job has; `counts` [status, job]."""
    first, *others = statuses
    total: npt.NDArray[np.int32] = counts[first]
    for status in others:  # whole numbers: no order of summation to keep
        total = total + counts[status]
    return total


class TaskTrigger(StrEnum):
    """The causes that move a task inside a session or between decision and outcome.

    ASSUME and EVICT are also the steps that a view takes from what the API last said, while a bind or an eviction is on
    its way.
    """

    ALLOCATE = "allocate"
    UNALLOCATE = "unallocate"
    PIPELINE = "pipeline"
    UNPIPELINE = "unpipeline"
    COMMIT = "commit"
    ASSUME = "assume"
    EVICT = "evict"
    UNEVICT = "unevict"
    UNEVICT_BOUND = "unevict to bound"


TASK_LIFE: Final = LifeCycle(
    {
        (TaskStatus.PENDING, TaskTrigger.ALLOCATE): TaskStatus.ALLOCATED,
        (TaskStatus.PENDING, TaskTrigger.PIPELINE): TaskStatus.PIPELINED,
        (TaskStatus.ALLOCATED, TaskTrigger.UNALLOCATE): TaskStatus.PENDING,
        (TaskStatus.ALLOCATED, TaskTrigger.COMMIT): TaskStatus.BINDING,
        (TaskStatus.PENDING, TaskTrigger.ASSUME): TaskStatus.BINDING,  # the cycle before has committed it
        (TaskStatus.BINDING, TaskTrigger.UNALLOCATE): TaskStatus.PENDING,  # the bind was refused
        (TaskStatus.PIPELINED, TaskTrigger.UNPIPELINE): TaskStatus.PENDING,
        (TaskStatus.BOUND, TaskTrigger.EVICT): TaskStatus.RELEASING,
        (TaskStatus.RUNNING, TaskTrigger.EVICT): TaskStatus.RELEASING,
        (TaskStatus.RELEASING, TaskTrigger.UNEVICT): TaskStatus.RUNNING,  # even when it was Bound: Volcano does so
        (TaskStatus.RELEASING, TaskTrigger.UNEVICT_BOUND): TaskStatus.BOUND,  # the fix unevict-restores-bound
    }
)


class TaskChange(NamedTuple):
    """A step of a task's life and the change of the job's counts of pending, ready and allocated tasks."""

    after: TaskStatus
    waits: int
    became_ready: int
    gained: int


def change_between(before: int, after: TaskStatus) -> TaskChange:
    """Return how the job's counts change when the task has another status."""
    return TaskChange(
        after,
        (after == TaskStatus.PENDING) - (before == TaskStatus.PENDING),
        IS_READY[after] - IS_READY[before],
        IS_ALLOCATED[after] - IS_ALLOCATED[before],
    )


CHANGES: Final[dict[tuple[int, TaskTrigger], TaskChange]] = {
    (before, trigger): change_between(before, after) for (before, trigger), after in TASK_LIFE.transitions.items()
}
"""Every step there is, worked out once: tasks are moved twice or more in every session."""


def status_of(phase: str | None, deleting: bool, node: str | None) -> TaskStatus:
    """Return the status of a pod's task as the api has the pod (source: Volcano `getTaskStatus`, `api/helpers.go`)."""
    if phase == "Running":
        return TaskStatus.RELEASING if deleting else TaskStatus.RUNNING
    if phase == "Pending":
        if deleting:
            return TaskStatus.RELEASING
        return TaskStatus.BOUND if node else TaskStatus.PENDING
    if phase == "Succeeded":
        return TaskStatus.SUCCEEDED
    return TaskStatus.FAILED if phase == "Failed" else TaskStatus.UNKNOWN
