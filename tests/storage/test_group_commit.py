"""Group commit: many appends, one transaction, and to each its own answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import DiskFullError
from storage.group_commit import MAX_RECORDS, Batch, GroupCommit, Span
from storage.journal import Record
from storage.memory import MemoryJournal
from tests.storage.examples import everything, record, records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.journal import Journal


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(0, 100))
def test_spans_are_in_a_row(counts: list[int], before: int) -> None:
    batch = Batch()
    assert [batch.add(records(count)) for count in counts] == list(range(len(counts)))
    spans = batch.spans(before + sum(counts))
    numbers = [number for span in spans if span.last for number in range(span.first, span.last + 1)]
    assert numbers == list(range(before + 1, before + sum(counts) + 1))
    assert [span.last - span.first + 1 if span.last else 0 for span in spans] == counts


def test_a_batch_is_full_by_records_or_bytes() -> None:
    by_records, by_bytes = Batch(), Batch()
    by_records.add([record(1)] * (MAX_RECORDS - 1))
    assert not by_records.full
    by_records.add([record(1)])
    assert by_records.full
    by_bytes.add([Record("api", bytes(9 << 20))])
    assert by_bytes.full


@pytest.mark.anyio
async def test_each_writer_gets_its_own_numbers(journal: Journal) -> None:
    commits = GroupCommit(journal)
    got: dict[tuple[int, int], Span] = {}

    async def write(writer: int) -> None:
        for number in range(20):
            got[writer, number] = await commits.append([Record("api", b"%d/%d" % (writer, number))] * (writer % 3 + 1))

    async with anyio.create_task_group() as writers:
        for writer in range(64):
            writers.start_soon(write, writer)
    stored = {each.sequence: each.payload for each in await everything(journal)}
    for (writer, number), (first, last) in got.items():
        assert last - first == writer % 3
        assert {stored[sequence] for sequence in range(first, last + 1)} == {b"%d/%d" % (writer, number)}
    assert len(stored) == sum(20 * (writer % 3 + 1) for writer in range(64))
    assert commits.transactions < 20 * 64 / 4, "they shared transactions"


@pytest.mark.anyio
async def test_no_records_no_numbers(journal: Journal) -> None:
    assert await GroupCommit(journal).append([]) == Span(0, 0)


class Slow(MemoryJournal):
    """Takes its time, so that others gather."""

    async def append(self, records: Sequence[Record]) -> int:
        await anyio.sleep(0.02)
        return await super().append(records)


@pytest.mark.anyio
async def test_a_failure_reaches_all_who_shared_it_and_nobody_else() -> None:
    journal = Slow()
    commits = GroupCommit(journal)
    failures: list[int] = []

    async def write(writer: int) -> None:
        try:
            await commits.append([record(writer)])
        except DiskFullError:
            failures.append(writer)

    journal.failure = DiskFullError("full")
    async with anyio.create_task_group() as writers:
        for writer in range(10):
            writers.start_soon(write, writer)
    assert sorted(failures) == list(range(10))
    assert (await journal.head()).sequence == 0
    journal.failure = None
    assert await commits.append([record(1)]) == Span(1, 1)


@pytest.mark.anyio
async def test_a_cancelled_leader_does_not_strand_the_others() -> None:
    journal = Slow()
    commits = GroupCommit(journal)
    done: list[Span] = []

    async def write(writer: int) -> None:
        done.append(await commits.append([record(writer)]))

    async with anyio.create_task_group() as others, anyio.create_task_group() as leaders:
        leaders.start_soon(write, 0)
        await anyio.wait_all_tasks_blocked()
        leaders.start_soon(write, 1)
        await anyio.wait_all_tasks_blocked()
        for writer in range(2, 6):
            others.start_soon(write, writer)
        await anyio.wait_all_tasks_blocked()
        leaders.cancel_scope.cancel()
    assert sorted(span.first for span in done if span.first > 2) == [3, 4, 5, 6]
    assert (await journal.head()).sequence == 6, "what was under way is whole"


@pytest.mark.anyio
async def test_cancelled_before_it_begins_nothing_is_written(journal: Journal) -> None:
    commits = GroupCommit(journal)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await commits.append([record(1)])
    assert scope.cancelled_caught
    assert (await journal.head()).sequence == 0
