"""The recorder: acknowledged means on disk, in order, in one transaction; when the journal fails everything stops."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from pumice.actors.errors import ActorFailedError, RecorderFailedError
from pumice.actors.journal.recorder import Recorder
from pumice.actors.runtime.actor import Context
from pumice.actors.runtime.clock import VirtualClock
from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.system.ports import RecorderPort
from pumice.core.messages.commands import Append, Entry, RecorderCommand
from pumice.core.messages.replies import Appended
from pumice.storage.memory import MemoryJournal

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def recording(journal: MemoryJournal, last: int = 0) -> AsyncGenerator[RecorderPort]:
    context = Context(VirtualClock())
    mailbox: RecorderPort = Mailbox("recorder", RecorderCommand, Appended, activity=context.activity)
    recorder = Recorder("recorder", mailbox, context, journal, last)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(recorder.run)
            yield mailbox
            mailbox.close()
    finally:
        mailbox.abort()


def entries(*texts: str, cause: int = 0) -> Append:
    return Append(tuple(Entry("outcome", text.encode(), cause) for text in texts))


async def test_what_is_acknowledged_is_in_the_journal() -> None:
    journal = MemoryJournal()
    async with recording(journal) as recorder:
        assert await recorder.ask(entries("a", "b")) == Appended(1, 2)
        assert [stored.payload for stored in await journal.read()] == [b"a", b"b"]
        assert await recorder.ask(Append(())) == Appended(0, 0)
        assert await recorder.ask(entries("c")) == Appended(3, 3)


async def test_all_that_waits_is_one_transaction() -> None:
    journal = MemoryJournal()
    spans: dict[int, Appended] = {}
    async with recording(journal) as recorder:

        async def ask(number: int) -> None:
            spans[number] = await recorder.ask(entries(f"{number}a", f"{number}b"))

        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(ask, number)
        assert journal.appends <= 3
        payloads = [stored.payload.decode() for stored in await journal.read()]
        for number, span in spans.items():
            assert payloads[span.first - 1 : span.last] == [f"{number}a", f"{number}b"]


async def test_told_records_are_written_too_and_before_stopping() -> None:
    journal = MemoryJournal()
    async with recording(journal) as recorder:
        for number in range(20):
            await recorder.tell(entries(str(number)))
    assert [int(stored.payload) for stored in await journal.read()] == list(range(20))


async def test_a_negative_cause_points_into_the_same_append() -> None:
    journal = MemoryJournal()
    async with recording(journal) as recorder:
        await recorder.ask(entries("before"))
        await recorder.ask(Append((Entry("cycle", b"c"), Entry("decision", b"d", -1), Entry("decision", b"e", 1))))
    assert [stored.cause for stored in await journal.read()] == [0, 0, 2, 1]


async def test_a_failing_journal_crashes_the_recorder_and_acknowledges_nothing() -> None:
    journal = MemoryJournal()
    journal.failure = OSError("no space left")
    with pytest.RaisesGroup(RecorderFailedError, flatten_subgroups=True):
        async with recording(journal) as recorder:
            with pytest.raises(ActorFailedError, match="no space left"):
                await recorder.ask(entries("a"))
    assert (await journal.head()).sequence == 0


async def test_a_second_writer_is_noticed() -> None:
    journal = MemoryJournal()
    async with recording(journal) as recorder:
        await recorder.ask(entries("a"))
    with pytest.RaisesGroup(RecorderFailedError, flatten_subgroups=True):
        async with recording(journal, last=0) as recorder:
            with pytest.raises(ActorFailedError, match="another process"):
                await recorder.ask(entries("b"))
