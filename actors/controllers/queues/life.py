"""The life cycle of a Volcano Queue: states, actions, and the one table that joins them.

Source: Volcano's `pkg/controllers/queue/state`. A queue that is to be closed is Closing while it has PodGroups.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """status.state; an empty one counts as OPEN."""

    OPEN = "Open"
    CLOSED = "Closed"
    CLOSING = "Closing"
    UNKNOWN = "Unknown"


class Action(StrEnum):
    """What a command, or the coming and going of PodGroups, asks of a queue."""

    SYNC = "SyncQueue"
    OPEN = "OpenQueue"
    CLOSE = "CloseQueue"


# (state, action): next state without PodGroups, next state with some
TRANSITIONS: Final[dict[tuple[State, Action], tuple[State, State]]] = {
    (State.OPEN, Action.SYNC): (State.OPEN, State.OPEN),
    (State.OPEN, Action.OPEN): (State.OPEN, State.OPEN),
    (State.OPEN, Action.CLOSE): (State.CLOSED, State.CLOSING),
    (State.CLOSED, Action.SYNC): (State.CLOSED, State.CLOSED),  # a PodGroup that comes late does not reopen the wait
    (State.CLOSED, Action.OPEN): (State.OPEN, State.OPEN),
    (State.CLOSED, Action.CLOSE): (State.CLOSED, State.CLOSED),
    (State.CLOSING, Action.SYNC): (State.CLOSED, State.CLOSING),
    (State.CLOSING, Action.OPEN): (State.OPEN, State.OPEN),
    (State.CLOSING, Action.CLOSE): (State.CLOSED, State.CLOSING),
    (State.UNKNOWN, Action.SYNC): (State.UNKNOWN, State.UNKNOWN),
    (State.UNKNOWN, Action.OPEN): (State.OPEN, State.OPEN),
    (State.UNKNOWN, Action.CLOSE): (State.CLOSED, State.CLOSING),
}
"""Every state and action."""


_BY_TEXT: Final = {"": State.OPEN, **{str(state): state for state in State}}


def state_of(text: str) -> State:
    """The state a queue is in; Open when it has none yet, Unknown for what is no state."""
    return _BY_TEXT.get(text, State.UNKNOWN)


def move(state: State, action: Action, *, has_pod_groups: bool) -> State:
    """The next state."""
    return TRANSITIONS[(state, action)][has_pod_groups]
