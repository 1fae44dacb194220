"""Who waits at a mailbox, for room or for an answer, and is cancelled, refused or late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from anyio import lowlevel

from pumice.actors.errors import ActorStoppedError
from pumice.actors.runtime.activity import Activity
from pumice.actors.runtime.envelope import Received
from pumice.actors.runtime.mailbox import Mailbox
from pumice.core.messages.commands import TakeSnapshot
from pumice.core.messages.replies import SnapshotTaken, ViewChecked

pytestmark = pytest.mark.anyio
Box = Mailbox[TakeSnapshot, SnapshotTaken | ViewChecked]


def make(capacity: int = 8, activity: Activity | None = None) -> Box:
    return Mailbox("box", TakeSnapshot, SnapshotTaken | ViewChecked, capacity=capacity, activity=activity)


def numbers(batch: Sequence[Received[TakeSnapshot, Any]]) -> list[int]:
    return [item.message.known_version for item in batch]


async def test_a_sender_cancelled_when_its_turn_has_come_has_sent() -> None:
    board = Activity()
    box = make(capacity=1, activity=board)
    await box.tell(TakeSnapshot(0))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(box.tell, TakeSnapshot(1))
        await anyio.wait_all_tasks_blocked()
        assert numbers(await box.receive(cap=1)) == [0]
        tasks.cancel_scope.cancel()
    assert numbers(await box.receive()) == [1]
    box.handled(1)
    assert not board.is_idle()
    box.handled(1)
    assert board.is_idle()
    box.abort()


async def test_who_waits_for_room_is_told_at_close_and_has_not_sent() -> None:
    board = Activity()
    box = make(capacity=1, activity=board)
    await box.tell(TakeSnapshot(0))
    refused: list[int] = []

    async def tell(number: int) -> None:
        with pytest.raises(ActorStoppedError):
            await box.tell(TakeSnapshot(number))
        refused.append(number)

    async with anyio.create_task_group() as tasks:
        for number in (1, 2):
            tasks.start_soon(tell, number)
        await anyio.wait_all_tasks_blocked()
        box.close()
        assert numbers(await box.receive()) == [0]  # before they have run
    assert sorted(refused) == [1, 2]
    with pytest.raises(anyio.EndOfStream):
        await box.receive()
    box.handled(1)
    assert board.is_idle()
    box.abort()


async def test_an_answer_nobody_waits_for_any_more_wakes_no_other_asker() -> None:
    box = make()
    await ask_and_answer_once(box, number=0)
    with anyio.move_on_after(0.01):
        await box.ask(TakeSnapshot(1))
    (late,) = await box.receive()
    answers: list[Any] = []

    async def ask(number: int) -> None:
        answers.append(await box.ask(TakeSnapshot(number)))

    async with anyio.create_task_group() as tasks:
        for number in (2, 3):
            tasks.start_soon(ask, number)
        await anyio.wait_all_tasks_blocked()
        late.reply(SnapshotTaken(1, 0, 0))
        await anyio.wait_all_tasks_blocked()
        assert answers == []
        for item in await box.receive():
            item.reply(SnapshotTaken(item.message.known_version, 0, 0))
            item.reply(SnapshotTaken(99, 0, 0))
    assert sorted(answer.handle for answer in answers) == [2, 3]
    box.abort()


async def ask_and_answer_once(box: Box, number: int) -> None:
    """One question asked and answered: what askers wait with may be used again from here on."""

    async def serve() -> None:
        (item,) = await box.receive()
        item.reply(SnapshotTaken(number, 0, 0))
        item.reply(SnapshotTaken(number, 0, 0))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        assert await box.ask(TakeSnapshot(number)) == SnapshotTaken(number, 0, 0)


async def test_who_asks_through_has_the_reply_and_is_cancelled_at_its_next_wait() -> None:
    box = make(capacity=1)
    await box.tell(TakeSnapshot(0))
    came: list[object] = []

    async def ask() -> None:
        came.append(await box.ask(TakeSnapshot(1), through=True))
        came.append("goes on")
        await lowlevel.checkpoint()
        came.append("went on too long")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            assert numbers(await box.receive(cap=1)) == [0]
            await anyio.wait_all_tasks_blocked()
            (item,) = await box.receive()
            assert item.message == TakeSnapshot(1)
            assert came == []
            await anyio.wait_all_tasks_blocked()
            item.reply(ViewChecked(("later",)))
    assert came == [ViewChecked(("later",)), "goes on"]
    box.abort()


async def test_who_asks_through_and_is_cancelled_hears_that_nobody_will_answer() -> None:
    box = make()
    heard: list[str] = []

    async def ask() -> None:
        with pytest.raises(ActorStoppedError):
            await box.ask(TakeSnapshot(1), through=True)
        heard.append("stopped")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.wait_all_tasks_blocked()
            assert heard == []
            box.abort()
    assert heard == ["stopped"]


async def test_who_tells_through_has_all_of_it_sent_and_is_cancelled_at_its_next_wait() -> None:
    box = make(capacity=1)
    await box.tell(TakeSnapshot(0))
    came: list[str] = []

    async def tell() -> None:
        await box.tell(TakeSnapshot(1), box.encode(TakeSnapshot(2)), through=True)
        came.append("goes on")
        await lowlevel.checkpoint()
        came.append("went on too long")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tell)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.wait_all_tasks_blocked()
            assert came == []
            assert numbers(await box.receive(cap=1)) == [0]
            await anyio.wait_all_tasks_blocked()
            assert numbers(await box.receive()) == [1, 2]
    assert came == ["goes on"]
    box.abort()
