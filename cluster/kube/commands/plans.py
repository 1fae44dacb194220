# SPDX-License-Identifier: Apache-2.0
"""Plan of a container, made before it runs: its duration, its output with times, its end."""

from __future__ import annotations

from typing import Final, NamedTuple

FOR_EVER: Final = float("inf")
LONGEST_S: Final = 1e10
"""A longer command, some three hundred years, lasts for ever."""
MOST_PRINTED: Final = 262_144
"""Characters that are kept of what a container prints; what comes later is not."""


AT_ITS_END: Final = FOR_EVER
"""When something is printed that comes after work."""


class Plan(NamedTuple):
    """The plan. `lasts_s`: seconds from its start, or `FOR_EVER`; `said`: its output with times, in seconds from its
    start.

    `works`: how often it does what takes as long as its pod is said to run, beside that.
    """

    lasts_s: float
    exit_code: int = 0
    said: tuple[tuple[float, str], ...] = ()
    works: int = 0

    def printed(self, ran_s: float) -> str:
        """Return the output of a container that has run for so many seconds."""
        return "".join([text for at, text in self.said if at <= ran_s])

    def working(self, duration_s: float) -> Plan:
        """Return this plan with a piece of work that takes so many seconds."""
        return self._replace(lasts_s=self.lasts_s + duration_s * self.works, works=0) if self.works else self
