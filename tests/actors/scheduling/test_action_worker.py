"""The worker of one action."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio import lowlevel

from pumice.actors.runtime.actor import Context
from pumice.actors.runtime.clock import RealClock
from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.scheduling.action_worker import ActionWorker
from pumice.cluster.handles import HandleTable
from pumice.core.messages.commands import ActionCommand, RunAction
from pumice.core.messages.replies import ActionDone, ActionFailed

Box = Mailbox[ActionCommand, ActionDone | ActionFailed]
Worker = tuple[Box, HandleTable[Any]]


class Deciding:
    """As much of a decider as the worker sees."""

    def __init__(self) -> None:
        self.stepped: dict[str, Any] = {}
        self.ran: list[tuple[Any, str]] = []

    def run_action(self, session: Any, action: str) -> None:
        self.ran.append((session, action))


class DryRuns:
    """Those who try elsewhere: what becomes of it is waited for."""

    async def drive(self, steps: Iterator[str]) -> None:
        for _ in steps:
            await lowlevel.checkpoint()


@asynccontextmanager
async def working(decider: Deciding, *seconds: float, inline_delivery: bool = False) -> AsyncGenerator[Worker]:
    """A worker whose stopwatch reads so many seconds, one after the other."""
    sessions: HandleTable[Any] = HandleTable(str)
    mailbox: Box = Mailbox("w", ActionCommand, ActionDone | ActionFailed)
    ports: dict[str, Any] = {"sessions": sessions, "decider": decider, "dry_runs": DryRuns(), "outside": None}
    context = Context(RealClock(), inline_delivery=inline_delivery)
    worker = ActionWorker("w", mailbox, context, **ports, stopwatch=iter(seconds).__next__)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        await anyio.wait_all_tasks_blocked()
        yield mailbox, sessions
        mailbox.close()
    mailbox.abort()


@pytest.mark.anyio
async def test_a_session_whose_holder_has_crashed_costs_the_order_and_not_the_worker() -> None:
    decider = Deciding()
    async with working(decider, 3.0, 10.0, 12.5) as (mailbox, sessions):
        gone = sessions.put("first")
        sessions.drop(gone)
        refused = await mailbox.ask(RunAction(gone, "allocate"))
        assert isinstance(refused, ActionFailed)
        assert "has crashed" in refused.error
        done = await mailbox.ask(RunAction(sessions.put("second"), "allocate"))
        assert isinstance(done, ActionDone)
        assert done.seconds == 2.5
    assert decider.ran == [("second", "allocate")]


@pytest.mark.anyio
async def test_an_action_that_waits_for_dry_runs_runs_in_the_turn_of_its_own_worker() -> None:
    """On virtual time, where others run in the turn of who sends: there, waiting is a crash."""
    decider = Deciding()

    def steps(session: str) -> Iterator[str]:
        for number in range(2):
            decider.ran.append((session, f"step {number}"))
            yield "asked"

    decider.stepped["gangpreempt"] = steps
    async with working(decider, 1.0, 4.0, 5.0, 7.0, inline_delivery=True) as (mailbox, sessions):
        tried = await mailbox.ask(RunAction(sessions.put("s"), "gangpreempt"))
        ran = await mailbox.ask(RunAction(sessions.put("t"), "allocate"))
    assert [each.seconds for each in (tried, ran) if isinstance(each, ActionDone)] == [3.0, 2.0]
    assert decider.ran == [("s", "step 0"), ("s", "step 1"), ("t", "allocate")]
