# SPDX-License-Identifier: Apache-2.0
"""The supervisor: it starts actors, restarts crashed ones, and stops them in order.

Owns: every actor's task.
Accepts: `Restart`; `MeasureProcess`, which it answers. `stop()` is a call from the process that runs it.
Sends: tells the recorder what becomes of actors.
Stops: sources first, each only when it has handled what was queued; the recorder last. Those of one rank, which do not
send to each other, stop together.

A crash costs what the actor had in hand. The new instance comes after a backoff (10 ms doubling up to 10 s, from the
start again after a minute without a crash) and works on the same mailbox. A child marked `vital` (the recorder) is not
started again: its crash ends `run`, and with it the process.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, assert_never

import anyio

from pumice.actors.errors import (
    ActorFailedError,
    ActorStoppedError,
    HungActorError,
    blames_the_world,
    chief,
    words_of,
)
from pumice.actors.runtime.level_signal import LevelSignal
from pumice.actors.runtime.mailbox import Mailbox
from pumice.core.messages.commands import MeasureProcess, ProcessMeasured, Restart, SupervisorCommand
from pumice.core.messages.events import ActorCrashed, ActorStarted, ActorStopped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from anyio.abc import TaskStatus

    from pumice.actors.runtime.actor import Actor, Context
    from pumice.actors.runtime.envelope import Received
    from pumice.actors.system.ports import SupervisorPort
    from pumice.core.messages.events import ActorEvent

FIRST_S = 0.01
LONGEST_S = 10.0
CALM_S = 60.0
PATIENCE_S = 10.0
"""How long an actor may take to stop before it is cancelled."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Child:
    """One supervised actor. `build` makes a new instance; all of them share `mailbox`.

    It stops when all of a greater `rank` have; `vital` ones, which the others cannot do without, last.
    """

    name: str
    mailbox: Mailbox[Any, Any]
    build: Callable[[], Actor[Any, Any]]
    vital: bool = False
    rank: int = 0


@dataclass
class _Running:
    """A running instance. `began`: the start of its life, by the event loop's clock; `scope` is around that life."""

    child: Child
    began: float
    scope: anyio.CancelScope | None = None
    ended: bool = False
    restarts: int = 0
    replaced: bool = False
    injected: bool = False


class Supervisor:
    """The supervisor. `children`: receivers before senders. `note` has events written to the journal, together.

    That all of them started is one note, and that those of one rank have stopped another one. `mailbox`: its own, where
    others have it already.
    """

    def __init__(
        self,
        children: Sequence[Child],
        context: Context,
        note: Callable[[Sequence[ActorEvent]], Awaitable[None]],
        mailbox: SupervisorPort | None = None,
    ) -> None:
        self.mailbox = mailbox or Mailbox("supervisor", SupervisorCommand, ProcessMeasured, activity=context.activity)
        self._children = children
        self._context = context
        self._note = note
        self._patience_s = PATIENCE_S
        self._running: dict[str, _Running] = {}
        self._begun = LevelSignal()
        self._ended = LevelSignal()
        self._stopped: list[ActorEvent] = []
        self._stop = anyio.Event()
        self._doomed = False
        self._said: dict[str, tuple[str, int]] = {}

    @property
    def restarts(self) -> dict[str, int]:
        """Return the number of restarts of each actor."""
        return {name: running.restarts for name, running in self._running.items()}

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Start all, then wait for `stop`. Raises what a vital actor crashed with."""
        try:
            async with anyio.create_task_group() as tasks:
                now, began = self._context.clock.now(), anyio.current_time()
                await self._note([ActorStarted(child.name, now) for child in self._children])
                for child in self._children:
                    running = self._running[child.name] = _Running(child, began)
                    tasks.start_soon(self._look_after, running, name=child.name)
                # Every actor's task has begun before anyone hears of the start.
                await self._begun.wait_beyond(len(self._children) - 1)
                tasks.start_soon(self._serve)
                task_status.started()
                await self._stop.wait()
                # senders first: a receiver that stopped before them would leave their messages unanswered
                for _, rank in groupby(sorted(self._children, key=_rank, reverse=True), _rank):
                    await self._stop_rank([self._running[child.name] for child in rank])
                self.mailbox.close()
        finally:
            for mailbox in self._mailboxes():
                mailbox.abort()

    def stop(self) -> None:
        """Stop all actors in order; `run` returns afterwards."""
        self._stop.set()

    async def _serve(self) -> None:
        """Serve until its mailbox is closed, after those of all others."""
        with suppress(anyio.EndOfStream):
            while True:
                batch = await self.mailbox.receive()
                for item in batch:
                    self._handle(item)
                self.mailbox.handled(len(batch))

    def _handle(self, item: Received[SupervisorCommand, ProcessMeasured]) -> None:
        message = item.message
        match message:
            case Restart(actor=actor, injected=injected):
                running = self._running.get(actor)
                if running is not None:
                    # Marked before it is cancelled: its end would else look like a stop on request.
                    running.replaced, running.injected = True, injected
                    _cancel(running)
            case MeasureProcess():
                counts = [mailbox.statistics() for mailbox in self._mailboxes()]
                longest = self._context.longest
                item.reply(
                    ProcessMeasured(tuple(sorted(counts, key=attrgetter("name"))), longest.seconds, longest.request)
                )
            case _:
                assert_never(message)

    def _mailboxes(self) -> list[Mailbox[Any, Any]]:
        return [*(child.mailbox for child in self._children), self.mailbox]

    async def _stop_rank(self, rank: Sequence[_Running]) -> None:
        for running in rank:
            running.child.mailbox.close()
        # all are closed by now, and this patience is for all of a rank: they stop together
        with anyio.move_on_after(self._patience_s):
            for running in rank:
                await self._end_of(running)
        for running in rank:
            await self._take_away(running)
        stopped, self._stopped = self._stopped, []
        await self._note(stopped)

    async def _end_of(self, running: _Running) -> None:
        while not running.ended:
            await self._ended.wait_beyond(self._ended.value)

    async def _take_away(self, running: _Running) -> None:
        if not running.ended:
            log.error("actor %s did not stop in %s s and is cancelled", running.child.name, self._patience_s)
            _cancel(running)
            await self._end_of(running)
        # Who still waits for an answer gets an error.
        running.child.mailbox.abort()
        self._context.activity.forget(running.child.name)

    async def _look_after(self, running: _Running) -> None:
        """Run it, and run it again after every crash, until its mailbox is closed.

        When everything ends together its askers are answered here: some are shielded, and would wait for ever.
        """
        self._begun.raise_to(self._begun.value + 1)
        try:
            await self._run_again_and_again(running)
        except BaseException:
            running.child.mailbox.abort()
            raise

    async def _run_again_and_again(self, running: _Running) -> None:
        child = running.child
        crashes = 0
        while True:
            error = await self._run_once(running)
            if error is None:
                break
            if child.mailbox.closed:
                await self._crashed(child, error, None)
                break
            crashes = 0 if anyio.current_time() - running.began > CALM_S else crashes
            # the exponent is capped: a float overflows at 2**1024
            pause = min(FIRST_S * 2.0 ** min(crashes, 60), LONGEST_S)
            crashes += 1
            await self._crashed(child, error, pause)
            await anyio.sleep(pause)
            running.restarts += 1
            running.began = anyio.current_time()
            await self._note((ActorStarted(child.name, self._context.clock.now()),))
        self._stopped.append(ActorStopped(child.name, self._context.clock.now()))
        running.ended = True
        self._ended.raise_to(self._ended.value + 1)

    async def _run_once(self, running: _Running) -> Exception | None:
        """Run the actor. Return None when it stopped on request; any other end is a crash."""
        child = running.child
        self._context.activity.settled(child.name, True)
        running.replaced = False  # a restart asked for while it was down anyway
        try:
            with anyio.CancelScope() as running.scope:
                await child.build().run()
        except Exception as error:
            self._context.activity.settled(child.name, False)
            if child.vital:
                self._doomed = True
                if blames_the_world(error):
                    log.critical("the process stops: %s", words_of(error))
                else:
                    log.critical("actor %s crashed and cannot be done without: %r", child.name, chief(error))
                raise
            return error
        if running.replaced:
            self._context.activity.settled(child.name, False)
            return HungActorError(child.name, injected=running.injected)
        return None

    async def _crashed(self, child: Child, error: Exception, pause: float | None) -> None:
        if self._doomed or self._fell_with_a_vital_one(error):
            log.debug("actor %s ends as well: %s", child.name, chief(error))
        elif isinstance(error, HungActorError) and error.injected:
            log.warning("%s", error)
        else:
            self._say(child.name, error, pause)
        await self._note((ActorCrashed(child.name, self._context.clock.now(), repr(chief(error)), pause),))

    def _say(self, name: str, error: Exception, pause: float | None) -> None:
        """Log a crash with its trace; repeated ones in one line after the 2nd, 4th, 8th …"""
        words, (before, times) = repr(error), self._said.get(name, ("", 0))
        times = times + 1 if words == before else 1
        self._said[name] = words, times
        if times == 1:
            log.error("actor %s crashed: %s", name, words, exc_info=error)
        # a power of two
        elif times & (times - 1) == 0:
            log.error(
                "actor %s crashed %d times in the same way, %g s apart by now: %s", name, times, pause or 0, words
            )

    def _fell_with_a_vital_one(self, error: Exception) -> bool:
        """Return whether the actor only asked one whose crash ends the process; that crash is reported by itself."""
        cause = chief(error)
        vital = {child.name for child in self._children if child.vital}
        return isinstance(cause, ActorFailedError | ActorStoppedError) and cause.actor in vital


def _cancel(running: _Running) -> None:
    if running.scope is not None:
        running.scope.cancel()


def _rank(child: Child) -> int:
    return -1 if child.vital else child.rank
