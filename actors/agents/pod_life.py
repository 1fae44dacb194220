"""The life of a pod on its node: states, triggers, and the one table that joins them (source: the kubelet)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """Where a pod is, as its node agent sees it."""

    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"
    STOPPING = "stopping"
    GONE = "gone"


class Trigger(StrEnum):
    """What moves it."""

    STARTED = "started"  # the start delay is over
    TIME_UP = "time up"  # it has run for its duration
    DELETED = "deleted"  # the api wants it gone
    STOPPED = "stopped"  # the termination has taken its time
    REMOVED = "removed"  # the api has removed it


TRANSITIONS: Final[dict[tuple[State, Trigger], State]] = {
    (State.STARTING, Trigger.STARTED): State.RUNNING,
    (State.STARTING, Trigger.DELETED): State.STOPPING,
    (State.STARTING, Trigger.REMOVED): State.GONE,
    (State.RUNNING, Trigger.TIME_UP): State.ENDED,
    (State.RUNNING, Trigger.DELETED): State.STOPPING,
    (State.RUNNING, Trigger.REMOVED): State.GONE,
    (State.ENDED, Trigger.DELETED): State.STOPPING,  # only a finalizer can keep an ended pod this long
    (State.ENDED, Trigger.REMOVED): State.GONE,
    (State.STOPPING, Trigger.DELETED): State.STOPPING,  # a later request may shorten the wait
    (State.STOPPING, Trigger.STOPPED): State.GONE,
    (State.STOPPING, Trigger.REMOVED): State.GONE,
}
"""A pair that is not here is refused: the agent lets it pass without a change."""


def move(state: State, trigger: Trigger) -> State | None:
    """The next state; None when the trigger means nothing there."""
    return TRANSITIONS.get((state, trigger))
