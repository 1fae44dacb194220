"""How long the parts of a cycle took, and what came out: for the metrics. Part of the session runner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.messages.events import CycleMeasured

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.messages.decisions import CycleResult


class Measure:
    """One cycle's stopwatch. `stopwatch()` gives seconds."""

    def __init__(self, stopwatch: Callable[[], float]) -> None:
        self._stopwatch = stopwatch
        self._began = self._close_began = stopwatch()
        self._open_s = self._close_s = 0.0
        self._actions: dict[str, float] = {}

    def opened(self) -> None:
        """The session is open; nothing was done before that."""
        self._open_s = self._stopwatch() - self._began

    def closing(self) -> None:
        """The session is about to be closed."""
        self._close_began = self._stopwatch()

    def closed(self) -> None:
        """It is."""
        self._close_s = self._stopwatch() - self._close_began

    def action(self, name: str, seconds: float) -> None:
        """An action has run."""
        self._actions[name] = seconds

    def finish(self, result: CycleResult, now: float) -> CycleMeasured:
        """Everything of this cycle; `now` is the moment it decided for."""
        unschedulable = len([None for condition in result.pod_conditions if condition.reason])
        return CycleMeasured(
            cycle=result.cycle,
            total_s=self._stopwatch() - self._began,
            open_s=self._open_s,
            close_s=self._close_s,
            actions=self._actions,
            plugins=result.report.timings,
            attempts={"scheduled": len(result.binds), "unschedulable": unschedulable},
            victims=len(result.evicts),
            preemption_attempts=len({evict.preemptor for evict in result.evicts if evict.preemptor}),
            unscheduled=result.report.unready,
            now=now,
            binding=result.report.binding,
            created=result.report.created,
        )
