"""The mailbox: nothing is dropped, full is back-pressure, every asker is answered."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.actors.errors import ActorFailedError, ActorStoppedError, UnexpectedReplyError, UnknownMessageError
from pumice.actors.runtime.activity import Activity
from pumice.actors.runtime.envelope import BATCH
from pumice.actors.runtime.mailbox import Mailbox, expected
from pumice.core.messages.commands import Poke, RunCycle, TakeSnapshot
from pumice.core.messages.replies import Done, SnapshotTaken, ViewChecked
from pumice.storage import codec

pytestmark = pytest.mark.anyio
Box = Mailbox[TakeSnapshot, SnapshotTaken | ViewChecked]


def make(capacity: int = 8, activity: Activity | None = None) -> Box:
    return Mailbox("box", TakeSnapshot, SnapshotTaken | ViewChecked, capacity=capacity, activity=activity)


def numbered(count: int, start: int = 0) -> list[TakeSnapshot]:
    return [TakeSnapshot(number) for number in range(start, start + count)]


async def receive_all(box: Box, into: list[int]) -> None:
    try:
        while True:
            into.extend(item.message.known_version for item in await box.receive())
    except anyio.EndOfStream:
        box.abort()


async def test_messages_travel_as_bytes_and_in_order() -> None:
    box = make()
    await box.tell(TakeSnapshot(1))
    await box.tell(*numbered(3, 2))
    batch = await box.receive()
    assert [item.message for item in batch] == numbered(4, 1)
    assert [codec.decode(item.frame, TakeSnapshot) for item in batch] == numbered(4, 1)
    assert not any(item.asked for item in batch)
    box.abort()


async def test_full_means_waiting_and_nothing_is_dropped() -> None:
    box = make(capacity=1)
    received: list[int] = []
    async with anyio.create_task_group() as tasks:
        for sender in range(10):
            tasks.start_soon(box.tell, *numbered(50, sender * 50))
        await anyio.wait_all_tasks_blocked()
        assert box.statistics().queued == 1
        assert box.statistics().blocked_senders == 9
        while len(received) < 500:
            received.extend(item.message.known_version for item in await box.receive(cap=60))
    assert sorted(received) == list(range(500))
    for sender in range(10):  # one sender's messages keep their order
        own = [number for number in received if number // 50 == sender]
        assert own == sorted(own)
    assert box.statistics().sent == box.statistics().received == 500
    box.abort()


@pytest.mark.filterwarnings("error")
@settings(max_examples=40, deadline=None)
@given(
    sends=st.lists(st.lists(st.integers(1, 700), max_size=6), min_size=1, max_size=4),
    capacity=st.integers(1, 4),
    cap=st.integers(1, 300),
    backend=st.sampled_from(["trio", "asyncio"]),
)
def test_every_message_arrives_once(sends: list[list[int]], capacity: int, cap: int, backend: str) -> None:
    """However many senders, batches of whatever size, however small the mailbox: each message once, in sender order."""

    async def run() -> None:
        board = Activity()
        box = make(capacity, board)
        received: list[int] = []

        async def send(sender: int, batches: list[int]) -> None:
            at = sender * 1_000_000
            for size in batches:
                await box.tell(*numbered(size, at))
                at += size

        async def receive() -> None:
            try:
                while True:
                    batch = await box.receive(cap)
                    received.extend(item.message.known_version for item in batch)
                    box.handled(len(batch))
            except anyio.EndOfStream:
                return

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            async with anyio.create_task_group() as senders:
                for sender, batches in enumerate(sends):
                    senders.start_soon(send, sender, batches)
            box.close()
        expected = [s * 1_000_000 + i for s, batches in enumerate(sends) for i in range(sum(batches))]
        assert sorted(received) == expected
        for sender in range(len(sends)):
            own = [number for number in received if number // 1_000_000 == sender]
            assert own == sorted(own)
        assert board.is_idle()
        box.abort()

    anyio.run(run, backend=backend)


async def test_ask_gets_its_own_answer() -> None:
    box = make()

    async def serve() -> None:
        for item in await box.receive():
            item.reply(SnapshotTaken(item.message.known_version, 0, 0))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        assert await box.ask_many(numbered(5)) == [SnapshotTaken(number, 0, 0) for number in range(5)]
    box.abort()


async def test_replies_may_come_in_any_order() -> None:
    box = make()

    async def serve() -> None:
        for item in reversed(await box.receive()):
            item.reply(SnapshotTaken(item.message.known_version, 0, 0))
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        assert await box.ask_many(numbered(5)) == [SnapshotTaken(number, 0, 0) for number in range(5)]
    box.abort()


async def test_a_batch_larger_than_an_envelope_is_cut() -> None:
    box = make(capacity=1)
    received: list[int] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive_all, box, received)
        await box.tell(*numbered(3 * BATCH + 1))
        box.close()
    assert received == list(range(3 * BATCH + 1))


async def test_stopping_answers_every_asker_and_blocked_sender() -> None:
    box = make(capacity=1)
    errors: list[Exception] = []

    async def ask(number: int) -> None:
        try:
            await box.ask(TakeSnapshot(number))
        except ActorStoppedError as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(ask, number)
        await anyio.wait_all_tasks_blocked()
        box.abort()
    assert len(errors) == 5
    with pytest.raises(ActorStoppedError):
        await box.tell(TakeSnapshot())


async def test_what_was_queued_at_close_is_still_received() -> None:
    box = make()
    await box.tell(*numbered(3))
    box.close()
    received: list[int] = []
    await receive_all(box, received)
    assert received == [0, 1, 2]


async def test_a_failure_reaches_the_asker() -> None:
    box = make()

    async def serve() -> None:
        (item,) = await box.receive()
        item.fail("box", "ValueError('no')")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        with pytest.raises(ActorFailedError, match="no"):
            await box.ask(TakeSnapshot())
    box.abort()


async def test_an_answer_of_another_type_is_an_error() -> None:
    box = make()

    async def serve() -> None:
        (item,) = await box.receive()
        item.reply(ViewChecked())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        with pytest.raises(UnexpectedReplyError, match="ViewChecked"):
            expected(await box.ask(TakeSnapshot()), SnapshotTaken)
    box.abort()


async def test_ask_many_says_none_for_what_did_not_come_in_time() -> None:
    box = make()

    async def serve() -> None:
        for item in await box.receive():
            if item.message.known_version % 2:
                item.reply(ViewChecked())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        assert await box.ask_many(numbered(4), within_s=0.05) == [None, ViewChecked(), None, ViewChecked()]
    box.abort()


async def test_ask_many_waits_no_longer_for_room_either() -> None:
    box = make(capacity=1)
    await box.tell(TakeSnapshot(7))
    with anyio.fail_after(5):
        assert await box.ask_many(numbered(2), within_s=0.05) == [None, None]
    assert [item.message.known_version for item in await box.receive()] == [7]  # the others were not sent
    assert box.statistics().queued == box.statistics().blocked_senders == 0
    box.abort()


@pytest.mark.parametrize("message", [RunCycle(), Poke(), Done()])
async def test_an_unknown_message_is_refused_at_the_sender(message: Any) -> None:
    box = make()
    with pytest.raises(UnknownMessageError, match="box does not know"):
        await box.tell(message)
    assert box.statistics().sent == 0
    box.abort()


async def test_a_cancelled_receiver_loses_nothing() -> None:
    box = make(capacity=4)
    received: list[int] = []
    async with anyio.create_task_group() as tasks:

        async def impatient() -> None:
            while len(received) < 200:
                with anyio.move_on_after(0.0005):
                    batch = await box.receive(cap=3)
                    received.extend(item.message.known_version for item in batch)

        tasks.start_soon(impatient)
        for number in range(200):
            await box.tell(TakeSnapshot(number))
    assert received == list(range(200))
    box.abort()


async def test_a_cancelled_sender_leaves_the_board_right() -> None:
    board = Activity()
    box = make(capacity=1, activity=board)
    await box.tell(TakeSnapshot(0))
    with anyio.move_on_after(0.01):
        await box.tell(TakeSnapshot(1))
    assert board.reasons() == ["1 messages or pieces of work in flight"]
    batch = await box.receive()
    box.handled(len(batch))
    assert [item.message.known_version for item in batch] == [0]
    assert board.is_idle()
    box.abort()


async def test_put_back_comes_first() -> None:
    box = make()
    await box.tell(*numbered(3))
    batch = await box.receive()
    await box.tell(TakeSnapshot(3))
    box.put_back(batch[1:])
    assert [item.message.known_version for item in await box.receive()] == [1, 2, 3]
    box.abort()


def test_a_mailbox_without_room_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="capacity"):
        make(capacity=0)
