"""The wall clock, the machine's or one that follows the event loop's. Nobody waits by these."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

import anyio


class Clock(Protocol):
    """The wall clock: seconds since the epoch. Waiting goes by `anyio.sleep`, never by this."""

    def now(self) -> float: ...


class RealClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()


@dataclass
class VirtualClock:
    """A wall clock that follows the event loop's (trio's MockClock), from `start` on (seconds since the epoch)."""

    start: float = 1_700_000_000.0
    _began: float | None = None

    def now(self) -> float:
        elapsed = anyio.current_time()
        if self._began is None:
            self._began = elapsed
        return self.start + elapsed - self._began
