"""The wall clock of a storm: it follows the event loop's virtual time, and may be made to jump."""

from __future__ import annotations

from dataclasses import dataclass

from actors.ports import Clock


@dataclass
class JumpingClock:
    """`inner` plus all jumps so far (seconds, either way)."""

    inner: Clock
    offset_s: float = 0.0

    def now(self) -> float:
        """Seconds since the epoch."""
        return self.inner.now() + self.offset_s

    def jump(self, seconds: float) -> None:
        """Be so much later, or earlier, from now on."""
        self.offset_s += seconds
