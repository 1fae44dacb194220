"""The life cycle of a Volcano Queue: states, actions, and the one table that joins them.

Source: Volcano's `pkg/controllers/queue/state`. A queue that is to be closed is Closing while it has PodGroups.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class QueueState(StrEnum):
    """status.state; an empty one counts as OPEN."""

    OPEN = "Open"
    CLOSED = "Closed"
    CLOSING = "Closing"
    UNKNOWN = "Unknown"


class QueueAction(StrEnum):
    """What a command, or the coming and going of PodGroups, asks of a queue."""

    SYNC = "SyncQueue"
    OPEN = "OpenQueue"
    CLOSE = "CloseQueue"


# (state, action): next state without PodGroups, next state with some
TRANSITIONS: Final[dict[tuple[QueueState, QueueAction], tuple[QueueState, QueueState]]] = {
    (QueueState.OPEN, QueueAction.SYNC): (QueueState.OPEN, QueueState.OPEN),
    (QueueState.OPEN, QueueAction.OPEN): (QueueState.OPEN, QueueState.OPEN),
    (QueueState.OPEN, QueueAction.CLOSE): (QueueState.CLOSED, QueueState.CLOSING),
    (QueueState.CLOSED, QueueAction.SYNC): (
        QueueState.CLOSED,
        QueueState.CLOSED,
    ),  # a PodGroup that comes late does not reopen the wait
    (QueueState.CLOSED, QueueAction.OPEN): (QueueState.OPEN, QueueState.OPEN),
    (QueueState.CLOSED, QueueAction.CLOSE): (QueueState.CLOSED, QueueState.CLOSED),
    (QueueState.CLOSING, QueueAction.SYNC): (QueueState.CLOSED, QueueState.CLOSING),
    (QueueState.CLOSING, QueueAction.OPEN): (QueueState.OPEN, QueueState.OPEN),
    (QueueState.CLOSING, QueueAction.CLOSE): (QueueState.CLOSED, QueueState.CLOSING),
    (QueueState.UNKNOWN, QueueAction.SYNC): (QueueState.UNKNOWN, QueueState.UNKNOWN),
    (QueueState.UNKNOWN, QueueAction.OPEN): (QueueState.OPEN, QueueState.OPEN),
    (QueueState.UNKNOWN, QueueAction.CLOSE): (QueueState.CLOSED, QueueState.CLOSING),
}
"""Every state and action."""


_BY_TEXT: Final = {"": QueueState.OPEN, **{str(state): state for state in QueueState}}


def state_of(text: str) -> QueueState:
    """The state a queue is in; Open when it has none yet, Unknown for what is no state."""
    return _BY_TEXT.get(text, QueueState.UNKNOWN)


def move(state: QueueState, action: QueueAction, *, has_pod_groups: bool) -> QueueState:
    """The next state."""
    return TRANSITIONS[(state, action)][has_pod_groups]
