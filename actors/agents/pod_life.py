"""The life of a pod on its node: states, triggers, and the one table that joins them (source: the kubelet)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class PodState(StrEnum):
    """Where a pod is, as its node agent sees it."""

    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"
    STOPPING = "stopping"
    GONE = "gone"


class PodTrigger(StrEnum):
    """What moves it."""

    STARTED = "started"  # the start delay is over
    TIME_UP = "time up"  # it has run for its duration
    DELETED = "deleted"  # the api wants it gone
    STOPPED = "stopped"  # the termination has taken its time
    REMOVED = "removed"  # the api has removed it


TRANSITIONS: Final[dict[tuple[PodState, PodTrigger], PodState]] = {
    (PodState.STARTING, PodTrigger.STARTED): PodState.RUNNING,
    (PodState.STARTING, PodTrigger.DELETED): PodState.STOPPING,
    (PodState.STARTING, PodTrigger.REMOVED): PodState.GONE,
    (PodState.RUNNING, PodTrigger.TIME_UP): PodState.ENDED,
    (PodState.RUNNING, PodTrigger.DELETED): PodState.STOPPING,
    (PodState.RUNNING, PodTrigger.REMOVED): PodState.GONE,
    (PodState.ENDED, PodTrigger.DELETED): PodState.STOPPING,  # only a finalizer can keep an ended pod this long
    (PodState.ENDED, PodTrigger.REMOVED): PodState.GONE,
    (PodState.STOPPING, PodTrigger.DELETED): PodState.STOPPING,  # a later request may shorten the wait
    (PodState.STOPPING, PodTrigger.STOPPED): PodState.GONE,
    (PodState.STOPPING, PodTrigger.REMOVED): PodState.GONE,
}
"""A pair that is not here is refused: the agent lets it pass without a change."""


def move(state: PodState, trigger: PodTrigger) -> PodState | None:
    """The next state; None when the trigger means nothing there."""
    return TRANSITIONS.get((state, trigger))
