# SPDX-License-Identifier: Apache-2.0
"""Back-off before the next try (source: client-go's reflector, `wait.Backoff` with its defaults)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

INITIAL_S: Final = 0.8
MOST_S: Final = 30.0
FACTOR: Final = 2.0
RESET_S: Final = 120.0
"""After so long without a failure it begins anew."""


class Backoff:
    """Doubling delays, each longer by up to its own length. `chance` gives numbers from 0 to 1; `initial_s`, `most_s`
    and times are seconds.
    """

    def __init__(self, chance: Callable[[], float], initial_s: float = INITIAL_S, most_s: float = MOST_S) -> None:
        self._chance = chance
        self._initial_s = self._next_s = initial_s
        self._most_s = most_s
        self._last: float | None = None

    def delay_s(self, now: float) -> float:
        """Return the delay after a failure at `now`."""
        if self._last is not None and now - self._last > RESET_S:
            self._next_s = self._initial_s
        self._last = now
        delay = self._next_s
        self._next_s = min(self._next_s * FACTOR, self._most_s)
        return delay * (1.0 + self._chance())

    def forget(self) -> None:
        """Forget the failures after a success: the next failure is the first."""
        self._next_s = self._initial_s
