"""The worker of one action."""

from __future__ import annotations

from typing import Any, cast

import anyio
import pytest

from actors.action_worker import ActionWorker
from actors.decider import Decider
from actors.mailbox import Mailbox
from actors.ports import Context, RealClock, Shelf
from core.messages.commands import ActionCommand, RunAction
from core.messages.replies import ActionDone, ActionFailed


def _decider(ran: list[Any]) -> Decider:
    def run_action(session: Any, action: str) -> None:
        ran.append((session, action))

    class Deciding:
        stepped: dict[str, Any] = {}

    deciding = Deciding()
    deciding.run_action = run_action  # type: ignore[attr-defined]
    return cast("Decider", deciding)


@pytest.mark.anyio
async def test_a_session_whose_holder_has_crashed_costs_the_order_and_not_the_worker() -> None:
    sessions: Shelf[Any] = Shelf()
    ran: list[Any] = []
    mailbox: Mailbox[ActionCommand, ActionDone | ActionFailed] = Mailbox("w", ActionCommand, ActionDone | ActionFailed)
    ports: dict[str, Any] = {"sessions": sessions, "decider": _decider(ran), "dry_runs": None}
    worker = ActionWorker("w", mailbox, Context(RealClock()), **ports, stopwatch=lambda: 0.0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        gone = sessions.put("first")
        sessions.drop(gone)
        refused = await mailbox.ask(RunAction(gone, "allocate"))
        assert isinstance(refused, ActionFailed)
        assert "has crashed" in refused.error
        assert isinstance(await mailbox.ask(RunAction(sessions.put("second"), "allocate")), ActionDone)
        mailbox.close()
    assert ran == [("second", "allocate")]
