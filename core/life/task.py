"""The life cycle of a task: states, triggers and the one table that joins them.

States and their sets are Volcano's (`pkg/scheduler/api/types.go`); Volcano itself checks no transition, the table is
Pumice's.
"""

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Final

from core.errors import InvalidTransition


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
        """The name Volcano prints, e.g. in ``5 Pending``."""
        return LABELS[self]


LABELS: Final = tuple(s.name.capitalize() for s in TaskStatus)
COUNT: Final = len(TaskStatus)

ALLOCATED_STATUSES: Final = (TaskStatus.BOUND, TaskStatus.BINDING, TaskStatus.RUNNING, TaskStatus.ALLOCATED)
READY_STATUSES: Final = (*ALLOCATED_STATUSES, TaskStatus.SUCCEEDED)
SCHEDULED_STATUSES: Final = (TaskStatus.RUNNING, TaskStatus.BOUND, TaskStatus.FAILED, TaskStatus.SUCCEEDED)
COMPLETED_STATUSES: Final = (TaskStatus.FAILED, TaskStatus.SUCCEEDED)
PREEMPTABLE_STATUSES: Final = (TaskStatus.BOUND, TaskStatus.RUNNING)

IS_ALLOCATED: Final = tuple(s in ALLOCATED_STATUSES for s in TaskStatus)
IS_READY: Final = tuple(s in READY_STATUSES for s in TaskStatus)


class TaskTrigger(StrEnum):
    """What moves a task inside a session or between decision and outcome.

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


# The keys are numbers to the type checkers: columns hold numbers, and an IntEnum's member equals its own.
TRANSITIONS: Final[Mapping[tuple[int, TaskTrigger], TaskStatus]] = {
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


def step(status: int, trigger: TaskTrigger) -> TaskStatus | None:
    """Next status; None where there is no such step."""
    return TRANSITIONS.get((status, trigger))


def move(status: int, trigger: TaskTrigger, who: str = "task") -> TaskStatus:
    """Next status, or :class:`InvalidTransition` naming the task, its status and the trigger."""
    after = TRANSITIONS.get((status, trigger))
    if after is None:
        raise InvalidTransition(who, LABELS[status], str(trigger))
    return after
