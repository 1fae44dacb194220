"""The scheduler's view for those who look on: read off, timed, never changed. Part of the cache."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pumice.core.board.board import BoardReader, residents_of
from pumice.core.messages.boards import BoardRead, ReadBoard, ResidentsRead
from pumice.core.state.view import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.actors.scheduling.decider import SchedulerView


class TimedBoards:
    """`stopwatch()` gives seconds, of work: nobody is to rest for what the machine did meanwhile."""

    def __init__(self, stopwatch: Callable[[], float] = time.thread_time) -> None:
        self._stopwatch = stopwatch
        self._reader = BoardReader()

    def read(self, view: SchedulerView, version: int, asked: ReadBoard) -> BoardRead:
        """What the asker has not; nothing of a view that is no `View`."""
        began = self._stopwatch()
        if not isinstance(view, View):
            return BoardRead(asked.version, asked.layout)
        return replace(self._reader.read(view, version, asked), seconds=self._stopwatch() - began)


def residents_on(view: SchedulerView, node: str) -> ResidentsRead:
    """The pods on a node."""
    return residents_of(view, node) if isinstance(view, View) else ResidentsRead(node, known=False)
