# SPDX-License-Identifier: Apache-2.0
"""The shell around a machine that watches the api and writes to it: node agents and controllers are such machines.

A machine is pure: it hears changes and returns requests for the api; it never sleeps, asks or reads a
clock. The shell watches, asks, keeps the time, and tells the activity board what is still to come. A test drives a
machine the same way without any actor.

Owns: its machines and their timers.
Accepts: `Poke`: let every machine look again.
Sends: asks the api (watch, and whatever the machines want).
When full: the poker waits.
Stops: immediately; what it has not done, the next one does, since all that matters is in the api.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
from anyio import lowlevel

from pumice.actors.runtime.actor import Actor
from pumice.actors.runtime.watcher import Watcher
from pumice.cluster.kernel.turns import AGAIN_MOST, Turns
from pumice.core.messages.commands import Poke
from pumice.core.messages.replies import Done, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from pumice.actors.runtime.actor import Context
    from pumice.actors.system.ports import ApiPort, PokePort
    from pumice.cluster.machine import Machine
    from pumice.core.messages.commands import ApiRequest


FOREVER = float("inf")
TOLD = 500
"""Changes that machines hear at a stretch: a list of all pods would hold up all other actors for a while."""
FREE_LOOKS = 10
"""Looks without a rest after a quiet time."""

log = logging.getLogger(__name__)


class Reconciler(Actor[Poke, Done]):
    """Runs machines, each in its turn, on one watch of all their kinds.

    `waits_for`: kinds; an object of one of them must have existed before any other kind is looked at. `rest_s`: the
    least time between two looks once they come one after the other, so that changes gather; a few are free.
    """

    def __init__(
        self,
        name: str,
        mailbox: PokePort,
        context: Context,
        *,
        api: ApiPort,
        machines: Sequence[Machine],
        waits_for: Sequence[str] = (),
        rest_s: float = 0.0,
    ) -> None:
        super().__init__(name, mailbox, context)
        self._waits_for = waits_for
        self._rest_s, self._rested_until = rest_s, -FOREVER
        self._turns = Turns(machines)
        self._api = api
        self._objects = context.objects
        self._admission_hook = context.admission_hook
        # pokes, the watch and the timers drive the same machines: one round at a time
        self._lock = anyio.Lock(fast_acquire=True)
        self._alarm = context.alarm()  # of the clock in use
        # from before the beginning: it lists first, so that a restart does not live through history again
        self._watcher = Watcher(name, api, context, waits_for or self._turns.kinds, since=-1)

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Watch, and run the timers."""
        return (self._watch, self._keep_time)

    async def handle(self, message: Poke) -> Done:
        """Look again."""
        async with self._lock:
            await self._work()
        return Done()

    async def _watch(self) -> None:
        if self._waits_for:
            await self._first()
        while True:
            changes = await self._watcher.next()
            async with self._lock:
                for start in range(0, len(changes.events), TOLD):
                    if start:
                        await lowlevel.checkpoint()
                    told = changes.events[start : start + TOLD]
                    self._turns.tell(told, self._objects.unpack, self._watcher.revision)
                await self._work()
                self._watcher.done(changes)
            if self._rest_s:
                await self._rest()

    async def _rest(self) -> None:
        # A chain of a few looks, as from a Deployment to its pods, is not held up; a stream of changes is.
        now = self._alarm.now()
        self._rested_until = max(self._rested_until, now - FREE_LOOKS * self._rest_s) + self._rest_s
        if self._rested_until > now:
            await anyio.sleep(self._rested_until - now)

    async def _first(self) -> None:
        """Wait until an object of an awaited kind exists; then list all objects of the other kinds, too."""
        while True:
            changes = await self._watcher.next()
            if any(event.type != "DELETED" for event in changes.events):
                break
            self._watcher.done(changes)
        self._watcher.turn_to(self._turns.kinds)

    async def _work(self) -> None:
        """Send the machines' requests until none has any more."""
        for requests in self._turns.rounds(self.clock.now()):
            await self._ask(requests)
        if self._turns.endless:
            log.error("bug in Pumice: %s is not done after %d rounds", self.name, AGAIN_MOST)
        self.activity.timers(self.name, self._turns.running_timers())
        wait_s = self._wait_s()
        if wait_s < FOREVER:
            # the loop that keeps the time may be asleep until an older, later time
            self._alarm.no_later_than(self._alarm.after(wait_s))

    async def _ask(self, requests: Sequence[ApiRequest]) -> None:
        """Bring one machine the answers to its requests."""
        passed = await self._admission_hook.passed(requests)
        replies = await self._api.ask_many([each for each in passed if not isinstance(each, Refused)])
        if len(replies) < len(passed):
            # the machine takes answers in the order of its requests: those that the hook refused stand in their places
            answers = iter(replies)
            replies = [each if isinstance(each, Refused) else next(answers) for each in passed]
        self._turns.answered(replies, self.clock.now())

    async def _keep_time(self) -> None:
        while True:
            wait_s = self._wait_s()
            if wait_s > 0:
                await self._alarm.sleep_until(self._alarm.after(wait_s))
                continue
            async with self._lock:
                with self.activity.busy():
                    await self._work()
            if self._wait_s() <= 0:
                await lowlevel.checkpoint()  # there is more to do now, and others have waited

    def _wait_s(self) -> float:
        due = self._turns.next_due()
        return FOREVER if due is None else max(due - self.clock.now(), 0.0)
