"""A session that can be followed from elsewhere: what it began with, and every change made to it since.

Done again in the same order on a session opened on the same columns, the changes lead to the same numbers, bit by bit,
in the columns and in every plugin that follows the events.
"""

from __future__ import annotations

from dataclasses import fields, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from core.life.task import TaskStatus
from core.session.session import Session

if TYPE_CHECKING:
    from config.schema import SchedulerConfig
    from core.objects.pod import Task
    from core.resources import Resource
    from core.session.carry import Carry, Clock, SessionOptions
    from core.state.snapshot import Snapshot


class Step(IntEnum):
    """Which of the session's methods changed it."""

    PLACE = 0
    UNPLACE = 1
    RELEASE = 2
    UNRELEASE = 3
    BIND = 4


Change = tuple[int, int, int, int, bool]
"""(step, task row, node row, status, evicted or bound)."""


class Opening(NamedTuple):
    """What a session was opened on. `dimensions`: the names of the resources known then."""

    snapshot: Snapshot
    dimensions: tuple[str, ...]
    config: SchedulerConfig
    clock: Clock
    carry: Carry
    options: SessionOptions


class RecordedSession(Session):
    """`began` never changes; `changes` grows."""

    def __init__(
        self,
        snapshot: Snapshot,
        config: SchedulerConfig,
        clock: Clock,
        carry: Carry,
        options: SessionOptions,
        total: Resource,
    ) -> None:
        names = tuple(snapshot.dimensions.names)
        self.began = Opening(own_columns(snapshot), names, config, clock, carry.copy(), options)
        self.changes: list[Change] = []
        super().__init__(snapshot, config, clock, carry, options, total)

    def place(self, task: Task, node: int, status: TaskStatus, *, evicted: bool = False) -> bool:
        """See Session."""
        self.changes.append((Step.PLACE, task.row, node, status, evicted))
        return super().place(task, node, status, evicted=evicted)

    def unplace(self, task: Task) -> None:
        """See Session."""
        self.changes.append((Step.UNPLACE, task.row, 0, 0, False))
        super().unplace(task)

    def release(self, task: Task) -> None:
        """See Session."""
        self.changes.append((Step.RELEASE, task.row, 0, 0, False))
        super().release(task)

    def unrelease(self, task: Task, *, bound: bool = False) -> None:
        """See Session."""
        self.changes.append((Step.UNRELEASE, task.row, 0, 0, bound))
        super().unrelease(task, bound=bound)

    def emit_bind(self, task: Task) -> None:
        """See Session."""
        self.changes.append((Step.BIND, task.row, 0, 0, False))
        super().emit_bind(task)


def repeat(session: Session, change: Change) -> None:
    """Make a change that was made to another session."""
    step, row, node, status, flag = change
    task = session.snapshot.tasks.handles[row]
    assert task is not None
    match Step(step):
        case Step.PLACE:
            session.place(task, node, TaskStatus(status), evicted=flag)
        case Step.UNPLACE:
            session.unplace(task)
        case Step.RELEASE:
            session.release(task)
        case Step.UNRELEASE:
            session.unrelease(task, bound=flag)
        case Step.BIND:
            session.emit_bind(task)


def own_columns(snapshot: Snapshot) -> Snapshot:
    """The same snapshot with columns of its own: a session changes those it is given."""
    return replace(snapshot, **{part: _copied(getattr(snapshot, part)) for part in ("tasks", "nodes", "jobs")})


def _copied(part: Any) -> Any:
    arrays = {field.name: getattr(part, field.name) for field in fields(part)}
    return replace(part, **{name: column.copy() for name, column in arrays.items() if isinstance(column, np.ndarray)})
