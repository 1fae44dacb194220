"""The wall clock of a storm: it follows the event loop's virtual time, and may be made to jump."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import trio

START: Final = 1_700_000_000.0


@dataclass
class JumpingClock:
    """trio's time since the first look, and all jumps so far (seconds, either way), after START."""

    offset_s: float = START
    _began: float | None = None

    def now(self) -> float:
        """Seconds since the epoch."""
        elapsed = trio.current_time()
        if self._began is None:
            self._began = elapsed
        return elapsed - self._began + self.offset_s

    def jump(self, seconds: float) -> None:
        """Be so much later, or earlier, from now on."""
        self.offset_s += seconds
