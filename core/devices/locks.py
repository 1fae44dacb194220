# SPDX-License-Identifier: Apache-2.0
"""Locks of nodes: while a node is locked, no further pod gets devices of that kind on it. Source: Volcano
`plugins/util/nodelock`.

A lock is an annotation of the node, with the moment at which it was set. The agent that gives a pod its devices on the
node takes it away; after five minutes it counts no longer. HAMi's are set and taken away in one breath, unless the fix
`hami-lock-key` is on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.core.devices.family import DeviceError
from pumice.core.objects.metadata import format_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

EXPIRES_S: Final = 300.0


def lock_is_held(said: str | None, now: float) -> bool:
    """Return whether the annotation locks the node. Raises ValueError for a text that is not a moment."""
    return said is not None and now - parse_time(said) <= EXPIRES_S


class StandingLock(NamedTuple):
    """A lock that was in a pod's way. `since`: seconds since the epoch; `uid`: the pod that set it in the same session,
    "" where the session found it.
    """

    name: str
    since: float
    uid: str = ""


class NodeLocks:
    """The locks of a session. `annotations`: of a node's row, as the session found it; `now`: seconds since the epoch.

    `earliest`: when the first lock that the session found in a pod's way counts no longer, None where none was;
    `in_the_way`: by row, the lock that was in a pod's way last.
    """

    def __init__(self, names: Sequence[str], annotations: Callable[[int], Mapping[str, str]], now: float) -> None:
        self._names, self._annotations, self._now = names, annotations, now
        self._set: dict[tuple[int, str], tuple[str, str]] = {}  # node and name -> moment, and the pod's uid
        self.earliest: float | None = None
        self.in_the_way: dict[int, StandingLock] = {}

    def take(self, row: int, name: str, uid: str) -> None:
        """Lock a node for a pod. Raises DeviceError when it is locked."""
        if (row, name) in self._set:  # no wake: kept, it is found by the next session; given up, nothing changes
            self.in_the_way[row] = StandingLock(name, self._now, self._set[row, name][1])
            raise DeviceError(self._words(row))
        said = self._annotations(row).get(name)
        try:
            held = lock_is_held(said, self._now)
        except ValueError as error:
            raise DeviceError(f'parsing time "{said}" as "2006-01-02T15:04:05Z07:00": cannot parse it') from error
        if held:
            self.in_the_way[row] = StandingLock(name, parse_time(said))
            ends = parse_time(said) + EXPIRES_S
            self.earliest = ends if self.earliest is None else min(self.earliest, ends)
            raise DeviceError(self._words(row))
        self._set[row, name] = format_time(self._now), uid

    def _words(self, row: int) -> str:
        return f"node {self._names[row]} has been locked within 5 minutes"

    def drop(self, row: int, name: str) -> None:
        """Take it away again."""
        self._set.pop((row, name), None)

    def of(self, row: int, uid: str) -> tuple[tuple[str, str], ...]:
        """Return (name, moment) of the locks that a pod has set on a node."""
        found = [(name, moment) for (at, name), (moment, whose) in self._set.items() if (at, whose) == (row, uid)]
        return tuple(sorted(found))
