"""How long each plugin took to open and to close a session: for the metrics. Part of the decider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.messages.decisions import CycleResult

Times = dict[str, dict[str, float]]
"""Seconds by point (OnSessionOpen, OnSessionClose) and plugin."""


class Watch:
    """Notes how long it was entered, unless it was left by an exception."""

    __slots__ = ("_began", "_plugin", "_stopwatch", "_taken")

    def __init__(self, stopwatch: Callable[[], float], taken: dict[str, float], plugin: str) -> None:
        self._stopwatch = stopwatch
        self._taken = taken
        self._plugin = plugin
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = self._stopwatch()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self._taken[self._plugin] = self._stopwatch() - self._began


class PluginTimes:
    """One session at a time: one that is lost on the way is forgotten at the next opening."""

    def __init__(self, stopwatch: Callable[[], float]) -> None:
        self._stopwatch = stopwatch
        self._taken: Times = {}

    def forget(self) -> None:
        """A session begins."""
        self._taken = {}

    def watch(self, plugin: str, point: str) -> Watch:
        """Around a plugin's work."""
        return Watch(self._stopwatch, self._taken.setdefault(point, {}), plugin)

    def told(self, result: CycleResult) -> CycleResult:
        """The result with the times in its report."""
        return replace(result, report=replace(result.report, timings=self._taken))
