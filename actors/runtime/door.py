"""The door: where the api is served, somebody else is to be heard about what controllers ask of it.

Whoever serves the api keeps the door; where nobody does, everything passes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from pumice.core.messages.replies import Refused

if TYPE_CHECKING:
    from pumice.core.messages.commands import ApiRequest

    Passed = ApiRequest | Refused
    Keeper = Callable[[Sequence[ApiRequest]], Awaitable[list[Passed]]]
    """What becomes of requests, one by one in their order: they pass, perhaps changed, or they are refused."""


class Door:
    """`keep` is said once by each who serves: the next one takes over."""

    def __init__(self) -> None:
        self._keeper: Keeper | None = None

    def keep(self, keeper: Keeper) -> None:
        """From now on this one is asked."""
        self._keeper = keeper

    async def passed(self, requests: Sequence[ApiRequest]) -> Sequence[Passed]:
        """The requests as they may go on to the api, and refusals in the place of others."""
        return requests if self._keeper is None else await self._keeper(requests)
