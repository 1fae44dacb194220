"""The wall clock, the machine's or one that follows the event loop's. Nobody waits by these."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import anyio

from pumice.cluster.timers import moment

log = logging.getLogger(__name__)
SLEWED_S: Final = 1.0
"""What a clock that is being corrected may be behind; more is a jump."""


class Clock(Protocol):
    """The wall clock: seconds since the epoch. Waiting goes by `anyio.sleep`, never by this."""

    def now(self) -> float: ...


@dataclass(eq=False)
class RealClock:
    """The machine's clock, which never goes back here: where it was set back this one goes on by the steady clock until
    the machine's has caught up, and says so once. Who compares `now()` with a time that was written down meets no
    hour that comes twice.
    """

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    _told: float = field(default=float("-inf"), init=False)
    _at: float = field(default=0.0, init=False)
    _behind: bool = field(default=False, init=False)

    def now(self) -> float:
        wall, steady = self.wall(), self.steady()
        going_on = self._told + (steady - self._at)
        behind = wall < going_on - SLEWED_S
        if behind and not self._behind:
            log.warning("the machine's clock went back by %.0f s: time goes on from where it was", going_on - wall)
        self._behind, self._at = behind, steady
        self._told = going_on if behind else max(wall, self._told)
        return self._told


@dataclass
class VirtualClock:
    """A wall clock that follows the event loop's (trio's MockClock), from `start` on (seconds since the epoch), one
    `moment` after the other.
    """

    start: float = 1_700_000_000.0
    elapsed: Callable[[], float] = anyio.current_time
    _began: float | None = None
    _newest: tuple[float, float] = (float("nan"), 0.0)  # the event loop's time and what it came to

    def now(self) -> float:
        elapsed = self.elapsed()
        at, told = self._newest
        if elapsed != at:
            if self._began is None:
                self._began = moment(elapsed)
            told = moment(self.start + elapsed - self._began)
            self._newest = elapsed, told
        return told
