"""Recurring moments without effect: hours of the day open and close a zone, and no pod moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pumice.core.messages.decisions import CycleResult


class Recurrence:
    """Follows cycles, and tells when a whole round of what recurs has gone by without any effect.

    Another round would come to nothing as well: so a system that only waits for that is idle.
    """

    def __init__(self) -> None:
        self._since = 0.0
        self._standing: tuple[int, ...] = ()

    def is_in_vain(self, result: CycleResult, now: float) -> bool:
        """Note a cycle's result at `now` (seconds since the epoch), and return whether a whole round had no effect."""
        recurs = result.recurs
        if recurs is None or result.binds or result.evicts or recurs.standing != self._standing:
            self._since, self._standing = now, () if recurs is None else recurs.standing
        return recurs is not None and now - self._since >= recurs.every_s
