"""The clocks of a storm: the event loop's, which does not wait, and the wall's, which follows it and may jump."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

import trio

START: Final = 1_700_000_000.0


class LeapingClock(trio.abc.Clock):
    """Virtual time: it stands still while anybody can run, and leaps to the next deadline when everybody waits.

    As trio's MockClock with an `autojump_threshold` of 0 does, but that one lets the loop turn once more before it
    leaps, in case that something comes from outside. Into a storm nothing does.
    """

    def __init__(self) -> None:
        self._now = 0.0

    def start_clock(self) -> None:
        """It stands."""

    def current_time(self) -> float:
        """Virtual seconds since the beginning."""
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """What the loop asks for when nobody can run: it need not sleep, the deadline has come."""
        if self._now < deadline < inf:
            self._now = deadline
        return 0.0


@dataclass
class JumpingClock:
    """trio's time since the first look, and all jumps so far (seconds, either way), after START."""

    offset_s: float = START
    _began: float = 0.0
    _elapsed: Callable[[], float] | None = None

    def now(self) -> float:
        """Seconds since the epoch."""
        if self._elapsed is None:
            self._elapsed = trio.lowlevel.current_clock().current_time
            self._began = self._elapsed()
        return self._elapsed() - self._began + self.offset_s

    def jump(self, seconds: float) -> None:
        """Be so much later, or earlier, from now on."""
        self.offset_s += seconds
