"""Rows and packs: records come back whatever way they were packed, and damage is pinned to a record."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.storage import rows
from pumice.storage.errors import DamagedError
from pumice.storage.journal import GENESIS, Record, Stored
from pumice.storage.rows import COLUMNS, Dictionary, JournalRow, PackReader
from tests.storage.examples import RECORDS, contents, record, records

WIDTH = len(COLUMNS)
DICTIONARY = Dictionary(1, b"the same again the same again record 1 ..........")


def written(given_records: Sequence[Record], dictionary: Dictionary | None = None) -> list[dict[str, Any]]:
    """The rows a database would hold."""
    flat = rows.pack_rows(given_records, 1, GENESIS, dictionary).columns
    return [dict(zip(COLUMNS, flat[at : at + WIDTH], strict=True)) for at in range(0, len(flat), WIDTH)]


def read_back(table: list[dict[str, Any]], dictionaries: dict[int, bytes] | None = None) -> list[Stored]:
    packs = [(row["sequence"], row["packing"], row["content"]) for row in table if row["content"] is not None]
    reader = PackReader(packs, dictionaries or {})
    found: list[Stored] = []
    reader.read((JournalRow(**{name: row[name] for name in JournalRow._fields}) for row in table), found)
    return found


@given(RECORDS, st.sampled_from([None, DICTIONARY]))
def test_records_come_back(given_records: list[Record], dictionary: Dictionary | None) -> None:
    back = read_back(written(given_records, dictionary), {1: DICTIONARY.content})
    assert [contents(stored) for stored in back] == given_records


@given(st.lists(st.integers(0, 600_000), max_size=12))
def test_packs_are_bounded_and_lose_nothing(sizes: list[int]) -> None:
    given_records = [Record("api", bytes(size)) for size in sizes]
    parts = list(rows.packs(given_records))
    assert [each for part in parts for each in part] == given_records
    assert all(parts)
    assert all(len(part) == 1 or sum(len(each.payload) for each in part) <= rows.PACK_BYTES for part in parts)


def test_a_pack_is_bounded_in_records() -> None:
    assert [len(part) for part in rows.packs(records(2500))] == [1024, 1024, 452]


def test_what_repeats_costs_little() -> None:
    table = written(records(100, first=100))
    assert [row["content"] is None for row in table] == [False] + [True] * 99
    assert len(table[0]["content"]) < 100 * 12
    assert len(written([record(5, size=500)], DICTIONARY)[0]["content"]) < 40


def test_what_does_not_repeat_costs_no_more_than_itself() -> None:
    noise = random.Random(1).randbytes(500)
    [row] = written([Record("api", noise)])
    assert len(row["content"]) <= 505


def test_damage_in_the_middle_of_a_pack_leaves_what_comes_before() -> None:
    """Either the bytes of a record differ, which its hash shows, or they cannot be had."""
    given_records = [Record("api", random.Random(number).randbytes(40).hex().encode()) for number in range(50)]
    whole = written(given_records)[0]["content"]
    for at in range(0, len(whole), 7):
        table = written(given_records)
        table[0]["content"] = whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]
        good = readable(table, given_records)
        assert at / len(whole) * 50 - 12 < good < 50, at


def readable(table: list[dict[str, Any]], given_records: list[Record]) -> int:
    """How many records come back as they were, from the first on."""
    for good, each in enumerate(given_records):
        try:
            stored = read_back([table[0], table[good]])[-1]
        except DamagedError:
            return good
        if stored.payload != each.payload:
            return good
    return len(given_records)


@pytest.mark.parametrize("damage", ["cut", "added to", "lost"])
def test_a_pack_cut_added_to_or_gone_is_damage(damage: str) -> None:
    table = written(records(3))
    content = table[0]["content"]
    table[0]["content"] = {"cut": content[:-20], "added to": content + b"more", "lost": None}[damage]
    with pytest.raises(DamagedError, match=damage):
        read_back(table)


def test_a_missing_dictionary_is_named() -> None:
    with pytest.raises(DamagedError, match="dictionary 1 is missing"):
        read_back(written([record(1, size=200)], DICTIONARY))


def test_the_form_is_plain_deflate() -> None:
    """What the file holds can be read without this program."""
    [row] = written([record(1, size=200)])
    assert zlib.decompress(row["content"], -15) == record(1, size=200).payload
