"""Dictionaries: made when small appends deflate badly, used from then on, and never needed to be made twice."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.storage.journal import Record
from pumice.storage.rows import (
    DICTIONARY_BYTES,
    FIRST_LOOK_BYTES,
    SMALL_BYTES,
    Dictionary,
    Sampler,
    build,
    deflate,
)
from pumice.storage.sqlite import SqliteJournal
from tests.storage.examples import contents, everything, pod, run_sql

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def noted(sampler: Sampler, appends: Sequence[Sequence[Record]]) -> None:
    for append in appends:
        sampler.note(append, len(deflate(b"".join(each.payload for each in append), b"")))


@settings(max_examples=30)
@given(st.lists(st.binary(min_size=1, max_size=3000), min_size=1, max_size=20))
def test_a_dictionary_is_bounded_and_of_the_samples(samples: list[bytes]) -> None:
    content = build(samples)
    assert 0 < len(content) <= DICTIONARY_BYTES
    assert content[-20:] in b"".join(samples) or any(content.endswith(sample) for sample in samples)


def test_it_helps_the_next_of_its_kind() -> None:
    content = build([pod(number).payload for number in range(60)])
    assert len(deflate(pod(99).payload, content)) < len(deflate(pod(99).payload, b"")) / 2


def test_the_sample_that_is_helped_least_comes_last_and_those_that_still_need_help_before_it() -> None:
    chance = random.Random(0)
    short, long = chance.randbytes(100), chance.randbytes(1000)
    assert build([short, long, short]) == short + long


def test_large_appends_need_none() -> None:
    sampler = Sampler(0)
    noted(sampler, [[pod(number) for number in range(100)]] * 50)
    assert len(b"".join(pod(number).payload for number in range(100))) > SMALL_BYTES
    assert sampler.proposal is None


def test_small_appends_get_one_once() -> None:
    sampler = Sampler(3)
    appends = [[pod(number)] for number in range(2 * FIRST_LOOK_BYTES // len(pod(0).payload))]
    noted(sampler, appends[:3])
    assert sampler.proposal is None, "too early to tell"
    noted(sampler, appends)
    proposal = sampler.proposal
    assert proposal is not None
    assert proposal.number == 4
    assert sampler.proposal == proposal, "until it is adopted"
    sampler.adopt(proposal)
    assert sampler.proposal is None


def test_it_is_looked_at_as_soon_as_enough_was_given() -> None:
    sampler = Sampler(0)
    for _ in range(FIRST_LOOK_BYTES // 1000):
        sampler.note([Record("api", b"x" * 1000)], 1000)
    rest = FIRST_LOOK_BYTES % 1000
    sampler.note([Record("api", b"x" * (rest - 1))], rest)
    assert sampler.proposal is None
    sampler.note([Record("api", b"x")], 1)
    assert sampler.proposal is not None


def test_each_look_comes_after_four_times_as_much_as_the_one_before_up_to_four_megabytes() -> None:
    sampler, looks, given = Sampler(0), list[int](), 0
    while len(looks) < 6:
        sampler.note([Record("api", b"x" * FIRST_LOOK_BYTES)], FIRST_LOOK_BYTES)
        given += 1
        if sampler.proposal is not None:
            sampler.adopt(sampler.proposal)
            looks.append(given)
            given = 0
    assert looks == [1, 4, 16, 64, 256, 256]


def test_what_deflates_well_needs_none() -> None:
    sampler = Sampler(0)
    noted(sampler, [[Record("api", b"the same " * 200)]] * 100)
    assert sampler.proposal is None


def test_empty_payloads_are_no_samples() -> None:
    sampler = Sampler(0)
    sampler.note([Record("api", b"")], 100_000)
    for _ in range(3):
        sampler.note([Record("api", b"x"), Record("api", b"")], FIRST_LOOK_BYTES)
    assert sampler.proposal is None or sampler.proposal == Dictionary(1, b"x")


@pytest.mark.anyio
async def test_a_journal_of_small_appends(path: Path) -> None:
    """Its readers, open before the dictionary was made, follow; so does who opens it later and writes on."""
    pods = [pod(number) for number in range(300)]
    async with await SqliteJournal.open(path) as journal, await SqliteJournal.open(path, read_only=True) as reader:
        for each in pods[:200]:
            await journal.append([each])
        assert [contents(stored) for stored in await reader.read()] == pods[:200]
        assert (await reader.check()).records == 200
    async with await SqliteJournal.open(path) as journal:
        for each in pods[200:]:
            await journal.append([each])
        assert [contents(stored) for stored in await everything(journal)] == pods
        assert (await journal.check()).whole
    [(dictionaries,)] = run_sql(path, "SELECT count(*) FROM dictionary")
    assert 1 <= dictionaries <= 3
    [(packed,)] = run_sql(path, "SELECT avg(length(content)) FROM journal WHERE sequence > 100")
    assert packed < len(pods[0].payload) / 4


@pytest.mark.anyio
async def test_a_changed_dictionary_is_damage(path: Path) -> None:
    async with await SqliteJournal.open(path) as journal:
        for number in range(200):
            await journal.append([pod(number)])
    [(first,)] = run_sql(path, "SELECT min(sequence) FROM journal WHERE packing = 1")
    run_sql(path, "UPDATE dictionary SET content = zeroblob(length(content)) WHERE number = 1")
    async with await SqliteJournal.open(path, read_only=True) as journal:
        first_bad = (await journal.check()).first_bad
    assert first_bad is not None
    assert first_bad.sequence == first
