# SPDX-License-Identifier: Apache-2.0
"""The users of a cluster: objects are created at the times in a trace or a manifest.

Owns: nothing; what is to come (`Coming`) outlives it, and has no other owner.
Accepts: `Announce`.
Sends: asks the api.
When full: the actor that announces waits.
Stops: immediately. After a crash the next one goes on, and creates again what was in hand, which the api knows already.

What is to come counts as timers on the activity board, so a system with arrivals ahead is not idle.
"""

from __future__ import annotations

import logging
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, assert_never

from pumice.actors.errors import ActorFailedError
from pumice.actors.runtime.actor import Actor
from pumice.actors.runtime.mailbox import AGAIN_S
from pumice.core.messages.commands import Announce, Create
from pumice.core.messages.replies import Done, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from pumice.actors.runtime.actor import Context
    from pumice.actors.system.ports import ApiPort, ArrivalsPort
    from pumice.core.messages.commands import Announced
    from pumice.core.messages.replies import ApiReply

FOREVER: Final = float("inf")
USER: Final = "submit"
KNOWN: Final = "AlreadyExists"
BATCH: Final = 500
"""Number of objects that are created at a time."""

log = logging.getLogger(__name__)


class Coming:
    """Announced arrivals, in the order of their time; at one moment in the order of announcement."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, bytes]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, arrival: Announced) -> None:
        """Announce one more arrival."""
        # The number keeps the order of announcement at one moment; without it bytes would be compared.
        heappush(self._heap, (arrival.at, next(self._numbers), arrival.blob))

    def next_due(self) -> float:
        """Return when the next arrival is due (seconds since the epoch); infinity for never."""
        return self._heap[0][0] if self._heap else FOREVER

    def take_due(self, now: float) -> list[tuple[float, int, bytes]]:
        """Take at most `BATCH` due arrivals."""
        due: list[tuple[float, int, bytes]] = []
        while self._heap and self._heap[0][0] <= now and len(due) < BATCH:
            due.append(heappop(self._heap))
        return due

    def give_back(self, taken: Sequence[tuple[float, int, bytes]]) -> None:
        """Give back arrivals that may not have been created."""
        for one in taken:
            # With their old numbers, and so in their old places.
            heappush(self._heap, one)


class Arrivals(Actor[Announce, Done]):
    """Creates announced objects at their times; at one moment in the order of announcement."""

    def __init__(self, name: str, mailbox: ArrivalsPort, context: Context, *, api: ApiPort, coming: Coming) -> None:
        super().__init__(name, mailbox, context)
        self._coming = coming
        self._api = api
        self._alarm = context.alarm()
        self._loop_sleep = context.alarm()

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Wait for the next arrivals, and create them."""
        return (self._keep_time,)

    async def handle(self, message: Announce) -> Done:
        """Announce more arrivals."""
        match message:
            case Announce():
                for arrival in message.arrivals:
                    self._coming.add(arrival)
            case _:
                assert_never(message)
        self.activity.timers(self.name, len(self._coming))
        # A new arrival may come before the one until which the loop sleeps.
        self._alarm.no_later_than(self._alarm.after(self._wait_s()))
        return Done()

    async def _keep_time(self) -> None:
        while True:
            # Round again instead of creating: others may have been announced meanwhile.
            if (wait_s := self._wait_s()) > 0:
                await self._alarm.sleep_until(self._alarm.after(wait_s))
                continue
            with self.activity.busy():
                await self._create()
            self.activity.timers(self.name, len(self._coming))

    def _wait_s(self) -> float:
        return self._coming.next_due() - self.clock.now()

    async def _create(self) -> None:
        due = self._coming.take_due(self.clock.now())
        try:
            replies = await self._answers([Create(blob, user=USER) for _, _, blob in due])
        # Cancelled or crashed, some may exist already: they are asked for again, and refused as known.
        except BaseException:
            self._coming.give_back(due)
            raise
        for reply in replies:
            if isinstance(reply, Refused) and reply.reason != KNOWN:
                log.warning("an arrival is refused: %s", reply.message)

    async def _answers(self, requests: Sequence[Create]) -> Sequence[ApiReply]:
        """Return the api's answers. After a crash of the api the request is sent again, and then some of the objects
        exist already.
        """
        while True:
            try:
                return await self._api.ask_many(requests)
            except ActorFailedError:
                await self._loop_sleep.sleep_until(self._loop_sleep.now() + AGAIN_S)
