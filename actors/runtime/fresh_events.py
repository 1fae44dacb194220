"""Events by the dozen: each is waited for once, and one that is to be waited for again is a new one."""

from __future__ import annotations

import sys
from typing import Any

import anyio


class FreshEvents:
    """Makes the events of one event loop.

    `anyio.Event()` finds out each time which loop that is, at more cost than the event itself; the first one's own type
    knows. Under trio it is trio's own, around which anyio's is only a shell.
    """

    __slots__ = ("_type",)

    def __init__(self) -> None:
        self._type: type[anyio.Event] | None = None

    def make(self) -> anyio.Event:
        """One that is not set. To be called in the event loop."""
        if self._type is None:
            self._type = _type_of_the_loop()
        return self._type()


def _type_of_the_loop() -> type[anyio.Event]:
    trio: Any = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        found: type[anyio.Event] = trio.Event
        return found
    return type(anyio.Event())
