"""The requests that are being answered, so that a server that stops can end them first.

A watch would otherwise keep its connection, and the server that waits for it, open for ever.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import anyio


class Open:
    """Every request under way. `closing`: no more are taken."""

    def __init__(self) -> None:
        self.closing = False
        self._requests: set[anyio.CancelScope] = set()
        self._endless: set[anyio.CancelScope] = set()
        self._none = anyio.Event()

    def __len__(self) -> int:
        return len(self._requests)

    @contextmanager
    def request(self) -> Generator[None]:
        """One request more, until the block ends or the server breaks it off."""
        with anyio.CancelScope() as scope:
            self._requests.add(scope)
            try:
                yield
            finally:
                self._requests.discard(scope)
                if not self._requests:
                    self._none.set()

    @contextmanager
    def endless(self, scope: anyio.CancelScope) -> Generator[None]:
        """`scope` would last as long as the client likes; it is the first to go."""
        self._endless.add(scope)
        if self.closing:
            scope.cancel()
        try:
            yield
        finally:
            self._endless.discard(scope)

    async def end(self, grace_s: float) -> None:
        """Take no more, end the streams, give the rest a moment, then break them off."""
        self.closing = True
        for scope in list(self._endless):
            scope.cancel()
        with anyio.move_on_after(grace_s):
            await self._wait_empty()
        self.cut()

    def cut(self) -> None:
        """Break off everything at once."""
        self.closing = True
        for scope in list(self._requests):
            scope.cancel()

    async def _wait_empty(self) -> None:
        while self._requests:
            self._none = anyio.Event()
            await self._none.wait()
