"""The worker of one action."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from actors.runtime.clock import RealClock
from actors.runtime.context import Context
from actors.runtime.handles import HandleTable
from actors.runtime.mailbox import Mailbox
from actors.scheduling.action_worker import ActionWorker
from core.messages.commands import ActionCommand, RunAction
from core.messages.replies import ActionDone, ActionFailed


class Deciding:
    """As much of a decider as the worker sees."""

    def __init__(self) -> None:
        self.stepped: dict[str, Any] = {}
        self.ran: list[tuple[Any, str]] = []

    def run_action(self, session: Any, action: str) -> None:
        self.ran.append((session, action))


def stopwatch(*seconds: float) -> Callable[[], float]:
    """Reads so many seconds, one after the other."""
    return iter(seconds).__next__


@pytest.mark.anyio
async def test_a_session_whose_holder_has_crashed_costs_the_order_and_not_the_worker() -> None:
    sessions: HandleTable[Any] = HandleTable(str)
    decider = Deciding()
    mailbox: Mailbox[ActionCommand, ActionDone | ActionFailed] = Mailbox("w", ActionCommand, ActionDone | ActionFailed)
    ports: dict[str, Any] = {"sessions": sessions, "decider": decider, "dry_runs": None, "outside": None}
    worker = ActionWorker("w", mailbox, Context(RealClock()), **ports, stopwatch=stopwatch(3.0, 10.0, 12.5))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        gone = sessions.put("first")
        sessions.drop(gone)
        refused = await mailbox.ask(RunAction(gone, "allocate"))
        assert isinstance(refused, ActionFailed)
        assert "has crashed" in refused.error
        done = await mailbox.ask(RunAction(sessions.put("second"), "allocate"))
        assert isinstance(done, ActionDone)
        assert done.seconds == 2.5
        mailbox.close()
    mailbox.abort()
    assert decider.ran == [("second", "allocate")]
