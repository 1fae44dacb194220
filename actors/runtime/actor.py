# SPDX-License-Identifier: Apache-2.0
"""An actor: the loop that all of them run, and the context that each gets. One actor, one file, one mailbox.

A subclass opens its file with: what it owns, what it accepts, what it sends, what it does when full, how it stops. It
overrides `handle` (one message) or `handle_batch` (a drained batch), and `loops` when it has work beside its mailbox
(a watch to pull, a timer). Its constructor takes the ports it may speak to; it holds nothing another actor writes.

Stopping: the supervisor closes the mailbox; the actor handles what is queued, `on_stop` finishes what it has begun,
its loops are cancelled, and every asker still waiting is answered with ActorStoppedError. After a crash the supervisor
runs a new instance on the same mailbox: what was queued is still there, what the old one had in hand is answered as
failed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio

from pumice.actors.errors import blames_the_world, words_of
from pumice.actors.runtime.activity import Activity
from pumice.actors.runtime.clock import Alarm, Clock
from pumice.actors.runtime.longest import Longest
from pumice.actors.runtime.mailbox import Mailbox
from pumice.core.messages.message import Message
from pumice.core.messages.replies import Refused
from pumice.storage.shared_objects import SharedObjects

if TYPE_CHECKING:
    from pumice.core.messages.commands import ApiRequest

    Passed = ApiRequest | Refused
    Keeper = Callable[[Sequence[ApiRequest]], Awaitable[list[Passed]]]
    """The fate of requests, one by one in their order: they pass, perhaps changed, or they are refused."""
    from collections.abc import Coroutine, Iterator

    from pumice.actors.runtime.envelope import Received

# --- The context that every actor is handed

# --- The admission hook
# The server of the api asks webhooks and policies; without a server, every request passes.


class AdmissionHook:
    """The hook for admission webhooks. Each server calls `keep` once; the next server takes over."""

    def __init__(self) -> None:
        self._keeper: Keeper | None = None

    def keep(self, keeper: Keeper) -> None:
        """Use this hook from now on."""
        self._keeper = keeper

    async def passed(self, requests: Sequence[ApiRequest]) -> Sequence[Passed]:
        """Return the requests as they may go on to the api, with refusals in the place of others."""
        return requests if self._keeper is None else await self._keeper(requests)


@dataclass(frozen=True)
class Context:
    """Context of every actor: the wall clock, the activity board, and objects that several actors read, decoded once.

    `alarm` makes something to sleep by; `longest` knows the request that held the loop longest; `admission_hook`: the
    server that admits requests of controllers. `inline_delivery`: handle a message in the turn of its sender, if
    that needs no wait (`pumice.actors.runtime.mailbox`).
    """

    clock: Clock
    alarm: Callable[[], Alarm] = Alarm
    activity: Activity = field(default_factory=Activity)
    objects: SharedObjects = field(default_factory=SharedObjects)
    longest: Longest = field(default_factory=Longest)
    admission_hook: AdmissionHook = field(default_factory=AdmissionHook)
    inline_delivery: bool = False


M = TypeVar("M", bound=Message)
R = TypeVar("R", bound=Message)

ATTEMPTS = 5
"""How often a message is handed to the next instance at most; one that still crashes it is given up."""


class Actor(Generic[M, R]):
    """The loop of an actor: receive a batch, handle it, answer. `cap` is the approximate largest number of messages in
    a batch.
    """

    cap = 1024

    def __init__(self, name: str, mailbox: Mailbox[M, R], context: Context) -> None:
        self.name = name
        self.mailbox = mailbox
        self.clock = context.clock
        self.activity = context.activity
        self._inline_delivery = context.inline_delivery
        self._in_hand: Received[M, R] | None = None

    async def handle(self, message: M) -> R | None:
        """Handle one message, and return the reply."""
        raise NotImplementedError

    async def handle_batch(self, batch: Sequence[Received[M, R]]) -> None:
        """Handle a drained batch, in order; by default one message after the other."""
        for item in self.each(batch):
            reply = await self.handle(item.message)
            if reply is not None:
                item.reply(reply)

    def each(self, batch: Sequence[Received[M, R]]) -> Iterator[Received[M, R]]:
        """Iterate, and remember the message in hand, so that a crash costs that one and not its neighbours."""
        for item in batch:
            self._in_hand = item
            yield item
            # a tell has no answer that could settle it: unsettled, a crash would hand it to the next instance once more
            item.settled = item.settled or not item.asked
        # from here on a crash is that of the batch, and not of its last message
        self._in_hand = None

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Run work beside the mailbox; it is cancelled when the actor stops."""
        return ()

    async def on_start(self) -> None:
        """Prepare before the first message."""

    async def on_stop(self) -> None:
        """Finish after the last message, before the loops are cancelled."""

    def at_end(self) -> None:
        """Answer the waiting askers at the actor's end, also after a crash."""

    async def run(self) -> None:
        """Run until the mailbox is closed and empty. Raises the error of a crash."""
        try:
            await self._live()
        finally:
            self.at_end()

    async def _live(self) -> None:
        await self.on_start()
        loops = self.loops()
        if not loops:
            await self._serve()
            await self.on_stop()
            return
        async with anyio.create_task_group() as tasks:
            for loop in loops:
                tasks.start_soon(loop, name=f"{self.name} {loop.__name__.strip('_')}")
            await self._serve()
            await self.on_stop()
            # after `on_stop`, which may wait for what the loops still carry out
            tasks.cancel_scope.cancel()

    async def _serve(self) -> None:
        if self._inline_delivery:
            self.mailbox.attended(self)
        try:
            await self._serve_each()
        finally:
            # from now on senders must not run this instance: what they send waits for the next one
            self.mailbox.attended(None)

    async def _serve_each(self) -> None:
        while True:
            try:
                batch = await self.mailbox.receive(self.cap)
            except anyio.EndOfStream:
                return
            await self.deal_with(batch)

    async def deal_with(self, batch: Sequence[Received[M, R]]) -> None:
        """Handle a batch to its end: after a crash its other messages go to the next instance."""
        try:
            await self.handle_batch(batch)
        except BaseException as error:
            self._give_up(batch, error)
            raise
        self._finish(batch)

    waits_for: Sequence[Mailbox[Any, Any]] = ()
    """Actors whose answers it awaits while it handles messages that `delivers_inline` accepts."""

    def delivers_inline(self, message: M) -> bool:
        """Return whether the message is handled without a wait, except for the actors it `waits_for`: see
        `pumice.actors.runtime.mailbox`.
        """
        return False

    def _finish(self, batch: Sequence[Received[M, R]]) -> None:
        if not self.answers_later:
            for item in batch:
                if not item.settled and item.asked:
                    item.fail(self.name, "left without an answer")
        self.mailbox.handled(len(batch))

    redeliver = False
    """True where doing a message twice does no harm: those in hand at a crash are handed to the next instance."""

    answers_later = False
    """True for an actor that keeps askers waiting beyond the batch they came in, and answers each of them some day."""

    def _give_up(self, batch: Sequence[Received[M, R]], error: BaseException) -> None:
        """Give up the message in hand with the crash; those after it wait for the next instance."""
        self.activity.settled(self.name, False)  # until the supervisor has started that one
        untouched = [item for item in batch if not item.settled and item is not self._in_hand]
        if self._in_hand is None:
            lost, untouched = untouched, []
        else:
            lost = [self._in_hand]
        again: list[Received[M, R]] = []
        for item in lost:
            if self.redeliver and not item.asked and item.attempts < ATTEMPTS:
                item.attempts += 1
                again.append(item)
            else:
                item.fail(self.name, words_of(error), world=blames_the_world(error))
        # what is put back stays counted as in flight, so the board is not idle before the next instance has it
        self.mailbox.put_back([*again, *untouched])
        self.mailbox.handled(len(batch) - len(again) - len(untouched))
