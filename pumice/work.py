# SPDX-License-Identifier: Apache-2.0
"""A budget of work: trials are bounded by their cost, not by the clock, so that load changes no answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RATE: Final = 10_000
"""Units of work that a second of `--budget` stands for; an idle core does 9,000 (preempting futures) to 68,000 (explain
over a thousand nodes) in one, as measured for docs/reference/whatif.md.
"""
OBJECT: Final = 2
"""Units for an object that is read into a view."""
CHANGE: Final = 3
"""Units for a change of an object in a future, with what controllers and node agents make of it."""
MOMENT: Final = 2
"""Units for a moment of a future at which something happens."""
STEP: Final = 1
"""Units for a job or a task that an action is done with, and for as many nodes as `NODES` are looked at for it."""
NODES: Final = 2_500
CYCLE: Final = 40
"""Units for a cycle, and one more for as many nodes and tasks as `ROWS`."""
ROWS: Final = 15


class WorkOverError(Exception):
    """The budget is used up."""


@dataclass(slots=True)
class WorkBudget:
    """A budget: `units` that may be used, and how many are `used`."""

    units: float
    used: float = 0.0

    @classmethod
    def of_seconds(cls, seconds: float) -> WorkBudget:
        """Return the budget that so many seconds stand for."""
        return cls(seconds * RATE)

    def __call__(self) -> bool:
        """Return whether the budget is used up."""
        return self.used >= self.units

    def add(self, units: float) -> None:
        """Add work that has been done."""
        self.used += units

    def demand(self, units: float = 0.0) -> None:
        """Add work that has been done. Raises WorkOverError when the budget is used up."""
        self.used += units
        if self():
            raise WorkOverError


def of_cycle(nodes: int, tasks: int) -> float:
    """Return the units of a cycle, without the steps of its actions."""
    return CYCLE + (nodes + tasks) / ROWS


def of_step(nodes: int) -> float:
    """Return the units of a job or task that an action takes up."""
    return STEP * (1 + nodes / NODES)
