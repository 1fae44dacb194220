"""Whether a scheduler is in the middle of carrying out a cycle: binds and evictions that come close after each other.

A look that ends between two of them would take one cycle of the scheduler's for two, the second of which saw what the
first had done.
"""

from __future__ import annotations

from typing import Final

from pumice.actors.real_clusters.mirror.decisions import PodSeen, decision_of, seen
from pumice.core.objects.metadata import Object

QUIET: Final = 0.3
"""Periods without a decision, after which a cycle is over: between two of its cycles a scheduler waits a whole one."""
LONGEST: Final = 1.5
"""Periods that a cycle is waited for: where there is always something bound, there is no end to be seen."""


class Burst:
    """Hears of every pod, in order; `period_s`: seconds that the scheduler waits between two cycles."""

    def __init__(self, period_s: float) -> None:
        self._quiet_s, self._longest_s = QUIET * period_s, LONGEST * period_s
        self._waiting, self._leaving = set[str](), set[str]()
        self._first = self._last = float("-inf")

    def hear(self, pod: Object, now: float, *, gone: bool = False) -> None:
        """`now`: seconds of any clock that does not go back."""
        found = seen(pod)
        before = PodSeen(found.uid, "" if found.uid in self._waiting else found.node, found.uid in self._leaving)
        if decision_of(before, pod, gone=gone) is not None:
            self._first = now if now - self._last >= self._quiet_s else self._first
            self._last = now
        for uids, member in ((self._waiting, not found.node), (self._leaving, found.leaving)):
            (uids.add if member and not gone else uids.discard)(found.uid)

    def left_s(self, now: float) -> float:
        """Seconds until it is over, as far as is to be seen now; 0: it is."""
        return max(0.0, min(self._last + self._quiet_s, self._first + self._longest_s) - now)
