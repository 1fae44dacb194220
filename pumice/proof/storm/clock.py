"""The wall clock of a storm, which follows the event loop's and may jump."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import trio

START: Final = 1_700_000_000.0


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
