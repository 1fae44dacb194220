"""The life cycle of a PodGroup: phases, triggers, one table. Source: Volcano `getPodGroupPhase` (reference section 5.4)."""

from enum import IntEnum, StrEnum
from typing import Final

from core.errors import InvalidTransition


class Phase(IntEnum):
    """Phase of a PodGroup; the integer is the value in the phase column."""

    NONE = 0
    PENDING = 1
    INQUEUE = 2
    RUNNING = 3
    UNKNOWN = 4
    COMPLETED = 5

    @property
    def label(self) -> str:
        """The text in `status.phase`."""
        return LABELS[self]


LABELS: Final = ("", "Pending", "Inqueue", "Running", "Unknown", "Completed")
BY_LABEL: Final = {label: Phase(i) for i, label in enumerate(LABELS)}


def is_pending(phase: int) -> bool:
    """Whether the job still waits for admission (IsPending)."""
    return phase <= Phase.PENDING


class Trigger(StrEnum):
    """What may change a phase: admission during a cycle, or one of the findings at its end."""

    ENQUEUE = "enqueue"
    RUNS_UNSCHEDULABLE = "some tasks run and this session found the gang unschedulable"
    SCHEDULED = "at least minMember tasks are scheduled"
    COMPLETED = "at least minMember tasks are scheduled and all of those have ended"
    SHORT = "fewer than minMember tasks are scheduled"


def _table() -> dict[tuple[Phase, Trigger], Phase]:
    table: dict[tuple[Phase, Trigger], Phase] = {}
    for phase in Phase:
        table[phase, Trigger.RUNS_UNSCHEDULABLE] = Phase.UNKNOWN
        table[phase, Trigger.SCHEDULED] = Phase.RUNNING
        table[phase, Trigger.COMPLETED] = Phase.COMPLETED
        # An admitted job stays admitted however long it waits (no timeout); any other falls back and must be admitted again.
        table[phase, Trigger.SHORT] = Phase.INQUEUE if phase is Phase.INQUEUE else Phase.PENDING
    table[Phase.NONE, Trigger.ENQUEUE] = Phase.INQUEUE
    table[Phase.PENDING, Trigger.ENQUEUE] = Phase.INQUEUE
    return table


TRANSITIONS: Final = _table()


def move(phase: Phase, trigger: Trigger, who: str = "podgroup") -> Phase:
    """Next phase, or InvalidTransition (a job that was admitted is not admitted again)."""
    after = TRANSITIONS.get((phase, trigger))
    if after is None:
        raise InvalidTransition(who, phase.label, str(trigger))
    return after


def finding(running: int, scheduled: int, completed: int, min_member: int, *, unschedulable: bool) -> Trigger:
    """Which finding holds at the end of a cycle, from the counts of tasks by status."""
    if running and unschedulable:
        return Trigger.RUNS_UNSCHEDULABLE
    if scheduled >= min_member:
        return Trigger.COMPLETED if scheduled == completed else Trigger.SCHEDULED
    return Trigger.SHORT
