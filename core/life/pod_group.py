# SPDX-License-Identifier: Apache-2.0
"""The life cycle of a PodGroup: phases, triggers, one table. Source: Volcano `getPodGroupPhase` (reference section
5.4).
"""

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from pumice.core.life.cycle import LifeCycle

IntArray = npt.NDArray[np.integer]
BoolArray = npt.NDArray[np.bool_]


class PodGroupPhase(IntEnum):
    """Phase of a PodGroup; the integer is the value in the phase column.

    A column is compared with the `value` of a member: with the member itself numpy takes ten times as long.
    """

    NONE = 0
    PENDING = 1
    INQUEUE = 2
    RUNNING = 3
    UNKNOWN = 4
    COMPLETED = 5

    @property
    def label(self) -> str:
        """Return the text in `status.phase`."""
        return LABELS[self]


OUTSIDE: Final[int] = PodGroupPhase.PENDING.value
"""In the column: who is at this, or below, waits to be admitted. (To ask a member for its value takes as long as it
takes to compare a small column.)
"""
LABELS: Final = ("", "Pending", "Inqueue", "Running", "Unknown", "Completed")
BY_LABEL: Final[Mapping[str, PodGroupPhase]] = {label: PodGroupPhase(i) for i, label in enumerate(LABELS)}


def phase_of(label: str) -> PodGroupPhase:
    """Return the phase that `status.phase` names; Pending for an unknown phase."""
    return BY_LABEL.get(label, PodGroupPhase.PENDING)


class PodGroupTrigger(StrEnum):
    """The causes that may change a phase: admission during a cycle, or one of the findings at its end."""

    ENQUEUE = "enqueue"
    RUNS_UNSCHEDULABLE = "some tasks run and this session found the gang unschedulable"
    SCHEDULED = "at least minMember tasks are scheduled"
    COMPLETED = "at least minMember tasks are scheduled and all of those have ended"
    SHORT = "fewer than minMember tasks are scheduled"


def _table() -> dict[tuple[PodGroupPhase, PodGroupTrigger], PodGroupPhase]:
    table: dict[tuple[PodGroupPhase, PodGroupTrigger], PodGroupPhase] = {}
    for phase in PodGroupPhase:
        table[phase, PodGroupTrigger.RUNS_UNSCHEDULABLE] = PodGroupPhase.UNKNOWN
        table[phase, PodGroupTrigger.SCHEDULED] = PodGroupPhase.RUNNING
        table[phase, PodGroupTrigger.COMPLETED] = PodGroupPhase.COMPLETED
        # An admitted job stays admitted however long it waits (no timeout); any other falls back and must be admitted
        # again.
        table[phase, PodGroupTrigger.SHORT] = (
            PodGroupPhase.INQUEUE if phase is PodGroupPhase.INQUEUE else PodGroupPhase.PENDING
        )
    table[PodGroupPhase.NONE, PodGroupTrigger.ENQUEUE] = PodGroupPhase.INQUEUE
    table[PodGroupPhase.PENDING, PodGroupTrigger.ENQUEUE] = PodGroupPhase.INQUEUE
    return table


POD_GROUP_LIFE: Final = LifeCycle(_table())

FINDINGS: Final = (
    PodGroupTrigger.RUNS_UNSCHEDULABLE,
    PodGroupTrigger.SCHEDULED,
    PodGroupTrigger.COMPLETED,
    PodGroupTrigger.SHORT,
)
RUNS_UNSCHEDULABLE, SCHEDULED, COMPLETED, SHORT = range(len(FINDINGS))

AFTER_FINDING: Final = np.array(
    [[POD_GROUP_LIFE.transitions[phase, trigger] for trigger in FINDINGS] for phase in PodGroupPhase], dtype=np.int8
)
"""The table as an array: [phase, index in FINDINGS] -> phase."""
AFTER_FINDING.flags.writeable = False


def finding(
    running: IntArray,
    scheduled: IntArray,
    completed: IntArray,
    min_member: IntArray,
    unschedulable: BoolArray | np.bool_,
) -> IntArray:
    """Return which finding (index in FINDINGS) holds at the end of a cycle, for each job, from its counts by status."""
    found = np.where(scheduled == completed, COMPLETED, SCHEDULED)
    found[scheduled < min_member] = SHORT
    found[(running > 0) & unschedulable] = RUNS_UNSCHEDULABLE
    return found
