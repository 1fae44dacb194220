"""Messages that are dealt with in the turn of who sends them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio import lowlevel

from pumice.actors.errors import ActorFailedError
from pumice.actors.runtime.mailbox import Mailbox
from pumice.core.messages.commands import TakeSnapshot
from pumice.core.messages.replies import ViewChecked
from tests.actors.runtime.test_actor import CRASH, HANG, Box, Echo, Stage, staged

pytestmark = pytest.mark.anyio
LATER = 1_000_004
PATIENCE_S = 10


class Ready(Echo):
    """Deals with everything immediately but LATER."""

    def delivers_inline(self, message: TakeSnapshot) -> bool:
        return message.known_version != LATER


@asynccontextmanager
async def at_rest(waits_for: Sequence[Mailbox[Any, Any]] = ()) -> AsyncGenerator[Stage]:
    """One that waits for mail, and how often somebody else had a turn since."""

    class Waiting(Ready):
        pass

    Waiting.waits_for = waits_for
    async with staged(Waiting, inline_delivery=True) as stage:
        await anyio.wait_all_tasks_blocked()
        yield stage


async def turn(turns: list[int]) -> None:
    turns.append(1)


async def test_who_sends_finds_it_done_before_anybody_else_has_a_turn() -> None:
    turns: list[int] = []
    async with at_rest() as stage, anyio.create_task_group() as tasks:
        tasks.start_soon(turn, turns)
        await stage.box.tell(TakeSnapshot(1), TakeSnapshot(2))
        assert stage.seen == [1, 2]
        assert await stage.ask(3) == ("3",)
        assert [said.problems for said in await stage.box.ask_many([TakeSnapshot(4), TakeSnapshot(5)])] == [
            ("4",),
            ("5",),
        ]
        answers = await stage.box.ask_many([TakeSnapshot(6)], within_s=1.0)
        assert [None if said is None else said.problems for said in answers] == [("6",)]
        assert turns == []
        counts = stage.box.statistics()
        assert (counts.sent, counts.received, counts.queued) == (6, 6, 0)
    assert turns == [1]
    assert stage.context.activity.is_idle()


async def test_without_the_context_saying_so_every_message_has_its_turn() -> None:
    turns: list[int] = []
    async with staged(Ready) as stage, anyio.create_task_group() as tasks:
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(turn, turns)
        assert await stage.ask(1) == ("1",)
        assert turns == [1]


async def test_what_is_a_wait_has_its_own_turn_and_so_has_what_comes_behind_it() -> None:
    async with at_rest() as stage:
        await stage.box.tell(TakeSnapshot(LATER))
        await stage.box.tell(TakeSnapshot(1))
        assert stage.seen == []
        assert await stage.ask(2) == ("2",)
        assert stage.seen == [LATER, 1, 2]


async def test_who_waits_for_one_that_is_at_work_is_not_run() -> None:
    other: Box = Mailbox("other", TakeSnapshot, ViewChecked)
    async with at_rest([other]) as stage:
        await stage.box.tell(TakeSnapshot(1))
        assert stage.seen == []
        assert await stage.ask(2) == ("2",)


async def test_a_crash_is_the_actors_own_and_costs_the_message_in_hand() -> None:
    async with at_rest() as stage:
        with pytest.raises(ActorFailedError, match="planted"):
            await stage.ask(CRASH)
        await stage.box.tell(TakeSnapshot(1), TakeSnapshot(CRASH), TakeSnapshot(2))
        await stage.context.activity.wait_idle()
        assert stage.seen == [CRASH, 1, CRASH, 2]
        assert await stage.ask(3) == ("3",)
        assert [crash.error for crash in stage.crashes()] == ["RuntimeError('planted')"] * 2
        assert stage.supervisor.restarts == {"echo": 2}


async def test_one_that_waits_against_its_word_crashes_and_holds_nobody_up() -> None:
    async with at_rest() as stage:
        with pytest.raises(ActorFailedError):
            await stage.ask(HANG)
        await stage.context.activity.wait_idle()
        assert "waits" in stage.crashes()[0].error
        assert await stage.ask(1) == ("1",)


async def test_one_that_is_told_to_stop_takes_no_more_and_does_what_came_before() -> None:
    async with at_rest() as stage:
        await stage.box.tell(TakeSnapshot(LATER))
        stage.supervisor.stop()
    assert stage.seen == [LATER]


async def test_a_promised_answer_is_given_when_it_is_taken() -> None:
    box: Box = Mailbox("box", TakeSnapshot, ViewChecked)
    newest = ["new"]

    async def serve() -> None:
        (item,) = await box.receive()
        for _ in range(2):
            while not item.waits:
                await lowlevel.checkpoint()
            item.promise(lambda: item.reply(ViewChecked((newest[0],))))
            assert not item.waits
            newest[0] += "er"

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            answer = await box.ask_later(TakeSnapshot(1))
            assert (await box.answered(answer)).problems == ("newer",)
            answer.again()
            assert (await box.answered(answer)).problems == ("newerer",)
    box.abort()
