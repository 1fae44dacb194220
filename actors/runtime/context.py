"""What every actor is handed beside its mailbox and its ports."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pumice.actors.runtime.activity import Activity
from pumice.actors.runtime.alarm import Alarm
from pumice.actors.runtime.clock import Clock
from pumice.actors.runtime.longest import Longest
from pumice.core.messages.replies import Refused
from pumice.storage.shared_objects import SharedObjects

if TYPE_CHECKING:
    from pumice.core.messages.commands import ApiRequest

    Passed = ApiRequest | Refused
    Keeper = Callable[[Sequence[ApiRequest]], Awaitable[list[Passed]]]
    """What becomes of requests, one by one in their order: they pass, perhaps changed, or they are refused."""

# --- The door: where the api is served, somebody else is to be heard about what controllers ask of it. Whoever serves
# the api keeps the door; where nobody does, everything passes.


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


# ---


@dataclass(frozen=True)
class Context:
    """What every actor gets: the wall clock, the activity board, and what many read, decoded once.

    `alarm` makes something to sleep by; `longest` knows the request that held the loop longest; `door`: who is to be
    heard about what controllers ask of the api. `at_once`: whether messages are dealt with in the turn of who sends
    them where that is no wait (`pumice.actors.runtime.mailbox`).
    """

    clock: Clock
    alarm: Callable[[], Alarm] = Alarm
    activity: Activity = field(default_factory=Activity)
    objects: SharedObjects = field(default_factory=SharedObjects)
    longest: Longest = field(default_factory=Longest)
    door: Door = field(default_factory=Door)
    at_once: bool = False
