"""The life cycle of a Volcano Queue: states, triggers, and the one table that joins them.

Source: Volcano's `pkg/controllers/queue/state`. A queue that is to be closed is Closing while it has PodGroups.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pumice.core.life.cycle import LifeCycle


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


class QueueTrigger(StrEnum):
    """What an action comes to, by whether the queue has PodGroups."""

    OPENED = "opened"
    CLOSED_EMPTY = "closed, and no PodGroup is in it"
    CLOSED_IN_USE = "closed while PodGroups are in it"
    EMPTIED = "no PodGroup is left in it"


_S, _T = QueueState, QueueTrigger

QUEUE_LIFE: Final = LifeCycle(
    {
        (_S.OPEN, _T.CLOSED_EMPTY): _S.CLOSED,
        (_S.OPEN, _T.CLOSED_IN_USE): _S.CLOSING,
        (_S.CLOSED, _T.OPENED): _S.OPEN,
        (_S.CLOSING, _T.OPENED): _S.OPEN,
        (_S.CLOSING, _T.CLOSED_EMPTY): _S.CLOSED,
        (_S.CLOSING, _T.EMPTIED): _S.CLOSED,
        (_S.UNKNOWN, _T.OPENED): _S.OPEN,
        (_S.UNKNOWN, _T.CLOSED_EMPTY): _S.CLOSED,
        (_S.UNKNOWN, _T.CLOSED_IN_USE): _S.CLOSING,
    }
)
"""A pair that is not here changes nothing: a PodGroup that comes late does not make a closed queue wait again."""

_TRIGGERS: Final[dict[QueueAction, tuple[QueueTrigger | None, QueueTrigger | None]]] = {
    QueueAction.SYNC: (QueueTrigger.EMPTIED, None),
    QueueAction.OPEN: (QueueTrigger.OPENED, QueueTrigger.OPENED),
    QueueAction.CLOSE: (QueueTrigger.CLOSED_EMPTY, QueueTrigger.CLOSED_IN_USE),
}
_BY_TEXT: Final = {"": QueueState.OPEN, **{str(state): state for state in QueueState}}


def state_of(text: str) -> QueueState:
    """The state a queue is in; Open when it has none yet, Unknown for what is no state."""
    return _BY_TEXT.get(text, QueueState.UNKNOWN)


def trigger_of(action: QueueAction, *, has_pod_groups: bool) -> QueueTrigger | None:
    """What an action comes to; None: to nothing, whatever the state."""
    return _TRIGGERS[action][has_pod_groups]
