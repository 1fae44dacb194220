"""Whoever a worker brings outcomes to, or tells anything else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import anyio

from pumice.storage import codec


@dataclass
class Told:
    """`outcomes` in the order in which they were encoded for it; `messages`: what it was told."""

    outcomes: list[Any] = field(default_factory=list[Any])
    messages: list[Any] = field(default_factory=list[Any])
    _more: anyio.Event = field(default_factory=anyio.Event)

    def encode(self, outcome: Any) -> bytes:
        self.outcomes.append(outcome)
        self._more.set()
        return codec.encode(outcome)

    async def tell(self, *messages: Any, through: bool = False) -> None:
        self.messages += messages

    async def outcome(self, number: int) -> Any:
        """The n-th, from 0 on, as soon as it is there; TimeoutError when it does not come."""
        with anyio.fail_after(5):
            while len(self.outcomes) <= number:
                self._more = anyio.Event()
                await self._more.wait()
        return self.outcomes[number]
