"""Stories out of a small journal."""

from __future__ import annotations

import pytest

from pumice.questions.history.entries import NameFilter, StoryEntry, as_entries, entries
from pumice.questions.history.naming import looked_through
from pumice.questions.history.story import cycle_of, overview_of, story_of
from pumice.storage.journal import Stored
from pumice.storage.memory import MemoryJournal
from tests.pumice.questions.history.records import RECORDS

pytestmark = pytest.mark.anyio


async def journal() -> MemoryJournal:
    memory = MemoryJournal()
    await memory.append(RECORDS)
    return memory


def numbers(told: list[StoryEntry]) -> list[int]:
    return [entry.sequence for entry in told]


async def test_every_record_reads_as_a_sentence() -> None:
    texts = [entry.text async for entry in entries(await journal())]
    assert texts == [
        "configuration default (conf) is in force",
        "Job a/train created: Pending",
        "PodGroup a/train-1 created: Pending",
        "Pod a/train-worker-0 created: Pending",
        "Pod a/other created: Pending",
        "cycle 1 decided 1 times at revision 7",
        "cycle 1 decided to bind a/train-worker-0 to n0 (job a/train-1)",
        "a/train-worker-0 is bound to n0",
        "Pod a/train-worker-0 changed: Pending, on n0",
        "Pod a/train-worker-0 changed: Pending, on n0",
        "cycle 2 decided 1 times at revision 7",
        "cycle 2 decided to evict a/train-worker-0 from n0 to make room for a/other (preempt, score -10)",
        "actor cache crashed: boom",
    ]


async def test_the_story_of_a_job_holds_its_parts_and_nothing_else() -> None:
    told = await story_of("a/train", entries(await journal()))
    assert numbers(told) == [2, 3, 4, 7, 8, 9, 12]  # 10 says what 9 said


async def test_the_story_of_a_pod_is_its_own() -> None:
    assert numbers(await story_of("a/train-worker-0", entries(await journal()))) == [4, 7, 8, 9, 12]
    assert numbers(await story_of("a/other", entries(await journal()))) == [5, 12]
    assert await story_of("a/nobody", entries(await journal())) == []


async def test_a_cycle_has_its_own_decisions_and_their_outcomes() -> None:
    first = await cycle_of(1, entries(await journal()))
    assert first.record is not None
    assert (first.record.data["digest"], numbers(first.decisions), numbers(first.outcomes)) == ("digest1", [7], [8])
    second = await cycle_of(2, entries(await journal()))
    assert (numbers(second.decisions), second.outcomes) == ([12], [])
    decision = second.result().decisions[0]
    assert {key: decision[key] for key in ("name", "preemptor", "reason", "action", "score")} == {
        "name": "train-worker-0",
        "preemptor": "a/other",
        "reason": "preempt",
        "action": "preempt",
        "score": -10.0,
    }
    assert (await cycle_of(3, entries(await journal()))).record is None


async def test_the_overview_counts_and_keeps_what_went_wrong() -> None:
    found = (await overview_of(entries(await journal()))).result().plain()
    assert found["records"] == len(RECORDS)
    assert found["kinds"] == {"actor": 1, "api": 6, "config": 1, "cycle": 2, "decision": 2, "outcome": 1}
    assert (found["cycles"], found["decisions"], found["began"], found["ended"]) == (2, 2, 0.5, 3.0)
    assert [event["sequence"] for event in found["events"]] == [1, 13]


async def test_a_story_needs_no_record_that_names_nothing_of_it() -> None:
    for name in ("a/train", "a/train-worker-0", "a/other", "a/nobody"):
        named = NameFilter(name)
        told = await story_of(name, as_entries(looked_through(await journal(), named)), named)
        assert numbers(told) == numbers(await story_of(name, entries(await journal())))


def test_a_filter_by_name_learns_names_that_look_otherwise() -> None:
    named = NameFilter("a/train")
    first, second = (Stored(1, "api", payload, 0, 0.0, b"") for payload in (b"-train-", b"-gang-"))
    assert [named.passes(each) for each in (first, second)] == [True, False]
    named.add("a/train-worker-0", "a/gang")
    assert [named.passes(each) for each in (first, second)] == [True, True]
