"""Recovery and the reading of cycles: a journal in, the state at its end out."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from pumice.core.messages.decisions import Bind
from pumice.core.messages.events import Bound, Mutation
from pumice.storage.chain import verified
from pumice.storage.errors import DamagedError
from pumice.storage.history import CycleReader, RecordedCycle
from pumice.storage.journal import Record
from pumice.storage.recovery import Recovered, recover
from pumice.storage.sqlite import SqliteJournal
from tests.storage.examples import bind, bound, config, cycle, mutation, run_sql

if TYPE_CHECKING:
    from pathlib import Path

    from pumice.storage.journal import Journal

pytestmark = pytest.mark.anyio


async def test_an_empty_journal_gives_a_beginning(journal: Journal) -> None:
    restored: list[Mutation] = []
    assert await recover(journal, restored.append) == Recovered()
    assert restored == []


async def test_the_state_at_the_end(journal: Journal) -> None:
    await journal.append([config("actions: allocate"), mutation(1, "a"), mutation(2, "b")])
    await journal.append([cycle(1, 2, 2), bind("a", 4), bind("b", 4)])
    await journal.append([mutation(3, "a", "MODIFIED"), bound("a", 5), config("nonsense", "not a configuration")])
    await journal.append([mutation(4, "b", "DELETED"), Record("kind of the future", b"\xc1")])
    restored: list[Mutation] = []
    recovered = await recover(journal, restored.append)
    assert [(each.revision, each.type, each.name) for each in restored] == [
        (1, "ADDED", "a"),
        (2, "ADDED", "b"),
        (3, "MODIFIED", "a"),
        (4, "DELETED", "b"),
    ]
    assert (recovered.sequence, recovered.records, recovered.mutations, recovered.revision) == (11, 11, 4, 4)
    assert (recovered.cycle, recovered.now, recovered.carry) == (1, 101.0, {"count": 1})
    assert recovered.config_text == "actions: allocate"
    assert recovered.config_digest == "digest of actions: allocate"
    assert recovered.unresolved == {6: (1, Bind("default", "b", "uid-b", "n0", "default/j"))}


async def test_a_mutation_written_twice_counts_once(journal: Journal) -> None:
    await journal.append([mutation(1, "a"), mutation(2, "b"), mutation(1, "a"), mutation(2, "b"), mutation(3, "c")])
    restored: list[Mutation] = []
    assert (await recover(journal, restored.append)).mutations == 3
    assert [each.name for each in restored] == ["a", "b", "c"]


async def test_a_long_journal_comes_in_chunks(journal: Journal) -> None:
    await journal.append([mutation(revision, f"p{revision}") for revision in range(1, 10_001)])
    revisions: list[int] = []
    recovered = await recover(journal, lambda each: revisions.append(each.revision))
    assert revisions == list(range(1, 10_001))
    assert recovered.revision == 10_000


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE journal SET cause = 9 WHERE sequence = 3",
        "DELETE FROM journal WHERE sequence = 3",
        "DELETE FROM journal WHERE sequence >= 3",
    ],
)
async def test_nothing_is_recovered_from_a_damaged_journal(path: Path, damage: str) -> None:
    async with await SqliteJournal.open(path) as journal:
        await journal.append([mutation(revision) for revision in range(1, 6)])
        run_sql(path, damage)
        with pytest.raises(DamagedError, match="record 3"):
            await recover(journal, lambda _: None)


async def test_what_comes_before_a_changed_record_is_handed_out_and_no_more(path: Path) -> None:
    found: list[int] = []

    async def read(journal: Journal) -> None:
        async with aclosing(verified(journal, await journal.head())) as chunks:
            async for chunk in chunks:
                found.extend(each.sequence for each in chunk)

    async with await SqliteJournal.open(path) as journal:
        await journal.append([mutation(revision) for revision in range(1, 6)])
        run_sql(path, "UPDATE journal SET cause = 9 WHERE sequence = 3")
        with pytest.raises(DamagedError, match="record 3"):
            await read(journal)
    assert found == [1, 2]


@pytest.mark.parametrize("after", [0, 1])
async def test_what_is_written_after_the_head_was_read_is_left_for_later(journal: Journal, after: int) -> None:
    await journal.append([mutation(revision) for revision in range(1, 4)])
    begin = (await journal.read(limit=1))[0] if after else None
    head = await journal.head()
    await journal.append([mutation(revision) for revision in range(4, 8)])
    async with aclosing(verified(journal, head, begin)) as chunks:
        assert [each.sequence async for chunk in chunks for each in chunk] == [1, 2, 3][after:]


async def cycles(journal: Journal) -> list[RecordedCycle]:
    reader = CycleReader()
    return [cycle for stored in await journal.read() if (cycle := reader.follow(stored)) is not None]


async def test_each_cycle_comes_with_what_it_saw(journal: Journal) -> None:
    await journal.append([config("one"), mutation(1, "a"), mutation(2, "b")])
    await journal.append([cycle(1, 1, 1), bind("a", 4)])
    await journal.append([bound("a", 5), mutation(3, "a", "MODIFIED"), config("bad", "no"), config("two")])
    await journal.append([cycle(2, 3)])
    await journal.append([mutation(4, "c"), cycle(3, 3)])
    found = await cycles(journal)
    assert [summary(each) for each in found] == [
        (1, 4, ["a"], ["a"], [], "one"),
        (2, 10, ["b", "a"], [], ["a"], "two"),
        (3, 12, [], [], [], "two"),
    ]


def summary(each: RecordedCycle) -> tuple[int, int, list[str], list[str], list[str], str]:
    outcomes = [outcome.name for outcome in each.outcomes if isinstance(outcome, Bound)]
    text = each.config.text if each.config else ""
    decisions = [decision.name for decision in each.decisions]
    return each.record.cycle, each.sequence, [one.name for one in each.mutations], decisions, outcomes, text


async def test_a_cycle_of_many_decisions(journal: Journal) -> None:
    await journal.append([cycle(1, 0, 9000), *(bind(f"p{number}", 1) for number in range(9000)), cycle(2, 0)])
    found = await cycles(journal)
    assert [len(each.decisions) for each in found] == [9000, 0]
