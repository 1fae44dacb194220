"""Events by the dozen: each is waited for once, and one that is to be waited for again is a new one."""

from __future__ import annotations

import sys
from typing import cast

import anyio


class FreshEvents:
    """Makes the events of one event loop.

    `anyio.Event()` finds out each time which loop that is, at more cost than the event itself, and on trio wraps what
    has the same methods already.
    """

    __slots__ = ("_type",)

    def __init__(self) -> None:
        self._type: type[anyio.Event] | None = None

    def make(self) -> anyio.Event:
        """One that is not set. To be called in the event loop."""
        kind = self._type
        if kind is None:
            kind = self._type = _kind()
        return kind()


def _kind() -> type[anyio.Event]:
    trio = sys.modules.get("trio")  # who does not run on it need not load it
    if trio is not None and trio.lowlevel.in_trio_run():
        return cast("type[anyio.Event]", trio.Event)
    return type(anyio.Event())
