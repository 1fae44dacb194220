"""What stands before every server of ours, be it of a run or of a journal: who may come in, and who is asked what takes
long.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import anyio

from pumice.actors.gateway.advice import AdviceDesk
from pumice.actors.gateway.security import Doorkeeper
from pumice.actors.gateway.settings import GatewaySettings
from pumice.actors.runtime.longest import Longest

# --- The requests that are being answered, so that a server that stops can end them first. A watch would otherwise
# keep its connection, and the server that waits for it, open for ever.


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


# ---


@dataclass(kw_only=True)
class Front:
    """`open`: the requests that are being answered; `longest`: which of them held the event loop longest."""

    settings: GatewaySettings
    longest: Longest = field(default_factory=Longest)
    open: Open = field(default_factory=Open)

    @cached_property
    def desk(self) -> AdviceDesk:
        """Where questions are asked that take long."""
        return AdviceDesk(self.settings.adviser, self.settings.question_limit, self.settings.question_s)

    @cached_property
    def door(self) -> Doorkeeper:
        """Who may come in."""
        return Doorkeeper(self.settings.token, self.settings.address[0])
