"""A thread with an asyncio loop of its own, reached from any event loop through an anyio portal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from anyio.from_thread import start_blocking_portal

from pumice.config.errors import InternalError
from pumice.storage.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar, TypeVarTuple, Unpack

    Result = TypeVar("Result")
    Arguments = TypeVarTuple("Arguments")


class LoopThread:
    """Runs from construction to `stop`."""

    def __init__(self, name: str) -> None:
        self._running = start_blocking_portal("asyncio", name=name)
        self._portal = self._running.__enter__()
        self.stopped = False

    async def call(self, function: Callable[[Unpack[Arguments]], Awaitable[Result]], *arguments: *Arguments) -> Result:
        """Run the function in the thread's loop. A cancelled caller cancels it there and waits until it has ended."""
        if self.stopped:
            raise ClosedError("the journal is closed")
        return await self._portal.call_async(function, *arguments)

    def stop(self) -> None:
        """Let the thread end when its calls have, and wait for that. A second call does nothing."""
        if not self.stopped:
            self.stopped = True
            self._running.__exit__(None, None, None)


async def unbroken(work: Awaitable[Result]) -> Result:
    """Do the work to its end although the caller is cancelled meanwhile."""
    with anyio.CancelScope(shield=True):
        return await work
    raise InternalError("a shield swallowed an exception")
