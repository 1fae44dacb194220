# SPDX-License-Identifier: Apache-2.0
"""The life of a pod on its node: states, triggers, and the one table that joins them (source: the kubelet)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pumice.core.life.cycle import LifeCycle


class PodState(StrEnum):
    """State of a pod, as its node agent sees it."""

    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"
    STOPPING = "stopping"
    GONE = "gone"


class PodTrigger(StrEnum):
    """Trigger of a pod's transition."""

    STARTED = "started"  # the start delay is over, or a container has begun
    REFUSED = "refused"  # the node has no room for what it asks
    TIME_UP = "time up"  # it has run for its duration
    CONTAINERS_OVER = "containers over"  # none of them runs, and none is started again
    SEEN_RUNNING = "seen running"  # the api says so
    SEEN_ENDED = "seen ended"
    DELETED = "deleted"  # the api wants it gone
    STOPPED = "stopped"  # nothing of it runs any more
    REMOVED = "removed"  # the api has removed it


_S, _T = PodState, PodTrigger

POD_LIFE: Final = LifeCycle(
    {
        (_S.STARTING, _T.STARTED): _S.RUNNING,
        (_S.STARTING, _T.REFUSED): _S.ENDED,
        (_S.STARTING, _T.CONTAINERS_OVER): _S.ENDED,  # they began and ended in one moment
        (_S.STARTING, _T.SEEN_RUNNING): _S.RUNNING,
        (_S.STARTING, _T.SEEN_ENDED): _S.ENDED,
        (_S.STARTING, _T.DELETED): _S.STOPPING,
        (_S.STARTING, _T.REMOVED): _S.GONE,
        (_S.RUNNING, _T.TIME_UP): _S.ENDED,
        (_S.RUNNING, _T.CONTAINERS_OVER): _S.ENDED,
        (_S.RUNNING, _T.SEEN_ENDED): _S.ENDED,
        (_S.RUNNING, _T.DELETED): _S.STOPPING,
        (_S.RUNNING, _T.REMOVED): _S.GONE,
        (_S.ENDED, _T.DELETED): _S.STOPPING,  # only a finalizer can keep an ended pod this long
        (_S.ENDED, _T.REMOVED): _S.GONE,
        (_S.STOPPING, _T.DELETED): _S.STOPPING,  # a later request may shorten the wait
        (_S.STOPPING, _T.STOPPED): _S.GONE,
        (_S.STOPPING, _T.REMOVED): _S.GONE,
    }
)
"""A pair that is not here changes nothing: what the api says may be older than what its node knows."""

ENDED_PHASES: Final = ("Succeeded", "Failed")

_SEEN: Final = {
    "Running": PodTrigger.SEEN_RUNNING,
    "Succeeded": PodTrigger.SEEN_ENDED,
    "Failed": PodTrigger.SEEN_ENDED,
}


def seen(state: PodState, phase: str | None) -> PodState:
    """Return the state after the api has shown that phase."""
    trigger = _SEEN.get(phase or "")
    return state if trigger is None else POD_LIFE.after(state, trigger)
