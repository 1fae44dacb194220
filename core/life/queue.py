"""The life cycle of a queue: states, commands, one table. Source: Volcano's queue controller
(`pkg/controllers/queue/state`).
"""

from enum import StrEnum
from typing import Final

from core.errors import InvalidTransition


class QueueState(StrEnum):
    """`status.state` of a queue; "" is a queue nobody has looked at."""

    NONE = ""
    OPEN = "Open"
    CLOSED = "Closed"
    CLOSING = "Closing"
    UNKNOWN = "Unknown"


class Trigger(StrEnum):
    """A command, or what the controller finds: whether PodGroups are left."""

    OPEN = "open"
    CLOSE_BUSY = "close, with PodGroups left"
    CLOSE_EMPTY = "close, with none left"
    SYNC_BUSY = "sync, with PodGroups left"
    SYNC_EMPTY = "sync, with none left"


def _table() -> dict[tuple[QueueState, Trigger], QueueState]:
    table: dict[tuple[QueueState, Trigger], QueueState] = {}
    for state in QueueState:
        table[state, Trigger.OPEN] = QueueState.OPEN
        table[state, Trigger.CLOSE_BUSY] = QueueState.CLOSING
        table[state, Trigger.CLOSE_EMPTY] = QueueState.CLOSED
        for sync in (Trigger.SYNC_BUSY, Trigger.SYNC_EMPTY):
            table[state, sync] = state
    table[QueueState.NONE, Trigger.SYNC_BUSY] = table[QueueState.NONE, Trigger.SYNC_EMPTY] = QueueState.OPEN
    table[QueueState.CLOSING, Trigger.SYNC_EMPTY] = QueueState.CLOSED
    return table


TRANSITIONS: Final = _table()


def move(state: QueueState, trigger: Trigger, who: str = "queue") -> QueueState:
    """Next state, or InvalidTransition."""
    after = TRANSITIONS.get((state, trigger))
    if after is None:
        raise InvalidTransition(who, state or "none", str(trigger))
    return after
