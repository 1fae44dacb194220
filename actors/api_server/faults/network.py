# SPDX-License-Identifier: Apache-2.0
"""The network between the askers and an api with faults: delayed deliveries, and planned crashes of actors."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from pumice.cluster.faults.decisions import chance

if TYPE_CHECKING:
    from pumice.actors.runtime.actor import Context
    from pumice.core.messages import commands, replies


class Delivery(Struct, order=True):
    """Something the network delivers at `at`: a request to carry out, an answer to give, or news for the watchers.

    No two have the same `number`, so no more is compared.
    """

    at: float
    number: int
    request: commands.StoreRequest | None = None
    item: Any = None
    answer: replies.ApiReply | None = None
    news: bool = False


class Network:
    """Requests under way between the askers and the api. They outlive crashes of the api and count as activity.

    News reach the watchers up to `news_delay_s` later; how much later follows from `seed`.
    """

    def __init__(self, context: Context, news_delay_s: float = 0.0, seed: int = 0) -> None:
        self.crashes: list[tuple[str, int]] = []
        self._alarm = context.alarm()
        self._activity = context.activity
        self._news_delay_s = news_delay_s
        self._seed = seed
        self._news = 0
        self._news_held = False
        self._held: list[Delivery] = []
        self._number = 0

    def hold(self, delay_s: float, **what: Any) -> None:
        """Delay a delivery by so much."""
        self._number += 1
        self._activity.begin()
        held = Delivery(self._alarm.now() + delay_s, self._number, **what)
        heappush(self._held, held)
        if self._held[0] is held:  # a waiter for an earlier one finds it then
            self._alarm.no_later_than(held.at)

    def holds_news(self) -> bool:
        """Return whether news is delayed, together with all later changes."""
        if self._news_delay_s and not self._news_held:
            self._news += 1
            self._news_held = True
            self.hold(self._news_delay_s * chance(self._seed, f"news\0{self._news}"), news=True)
        return self._news_held

    def crash(self, actor: str, steps: int) -> None:
        """Crash the actor so many turns of the event loop later."""
        self.crashes.append((actor, steps))
        self._alarm.no_later_than(self._alarm.now())

    async def wait(self) -> float:
        """Wait until a delivery is due or an actor is to crash, and return the planned time.

        What is held meanwhile moves the alarm and wakes no waiter.
        """
        return await self._alarm.sleep_until(self._held[0].at if self._held else float("inf"))

    def take(self, now: float) -> list[Delivery]:
        """Return all due deliveries."""
        due: list[Delivery] = []
        while self._held and self._held[0].at <= now:
            due.append(heappop(self._held))
        self._news_held = self._news_held and not any(each.news for each in due)
        return due

    def delivered(self, number: int) -> None:
        """Note that `number` of the taken messages were handled."""
        self._activity.end(number)
