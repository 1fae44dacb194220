"""How long each plugin took to open and to close a session: for the metrics. Part of the decider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.messages.decisions import CycleResult

Times = dict[str, dict[str, float]]
"""Seconds by point (OnSessionOpen, OnSessionClose) and plugin."""


class PluginTimes:
    """One session at a time: one that is lost on the way is forgotten at the next opening."""

    def __init__(self, stopwatch: Callable[[], float]) -> None:
        self._stopwatch = stopwatch
        self._taken: Times = {}

    def forget(self) -> None:
        """A session begins."""
        self._taken = {}

    def watch(self, plugin: str, point: str, work: Callable[[Any], None], session: Any) -> None:
        """Let a plugin work, and note how long it took, unless it raised."""
        began = self._stopwatch()
        work(session)
        self._taken.setdefault(point, {})[plugin] = self._stopwatch() - began

    def told(self, result: CycleResult) -> CycleResult:
        """The result with the times in its report."""
        return replace(result, report=replace(result.report, timings=self._taken))
