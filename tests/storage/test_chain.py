"""The chain: every field of every record counts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.storage.chain import Verifier, link
from pumice.storage.journal import GENESIS, FirstBad, Record, Stored
from tests.storage.examples import RECORDS, SMALL, records


def chained(given_records: list[Record]) -> list[Stored]:
    stored: list[Stored] = []
    previous = GENESIS
    for sequence, each in enumerate(given_records, start=1):
        previous = link(previous, sequence, each.kind, each.cause, each.at, each.payload)
        stored.append(Stored(sequence, each.kind, each.payload, each.cause, each.at, previous))
    return stored


def verify(stored: list[Stored]) -> FirstBad | None:
    verifier = Verifier(0, GENESIS)
    for each in stored:
        verifier.follow(each)
    return verifier.report().first_bad


@given(RECORDS)
def test_an_untouched_chain_is_whole(given_records: list[Record]) -> None:
    stored = chained(given_records)
    verifier = Verifier(0, GENESIS)
    assert all(verifier.follow(each) for each in stored)
    assert verifier.report().whole
    assert verifier.report().records == len(stored)


@given(st.lists(SMALL, min_size=1, max_size=8), st.data())
def test_a_changed_field_is_found_where_it_is(given_records: list[Record], data: st.DataObject) -> None:
    stored = chained(given_records)
    index = data.draw(st.integers(0, len(stored) - 1))
    victim = stored[index]
    change: dict[str, Any] = data.draw(
        st.sampled_from(
            [
                {"kind": victim.kind + "x"},
                {"payload": victim.payload + b"\0"},
                {"cause": victim.cause + 1},
                {"at": 1.0 if victim.at == 0.0 else -victim.at},
                {"hash": bytes(reversed(victim.hash)) if victim.hash != victim.hash[::-1] else GENESIS},
            ]
        )
    )
    stored[index] = msgspec.structs.replace(victim, **change)
    found = verify(stored)
    assert found is not None
    assert found.sequence == victim.sequence
    assert "changed" in found.why


@given(st.integers(0, 8))
def test_a_lost_record_is_found_where_it_was(index: int) -> None:
    stored = chained(records(10))
    del stored[index]
    found = verify(stored)
    assert found is not None
    assert found.sequence == index + 1
    assert "lost" in found.why


def test_a_record_that_breaks_the_chain_does_not_follow() -> None:
    first, second, third = chained(records(3))
    for wrong in (third, msgspec.structs.replace(second, cause=second.cause + 1)):
        verifier = Verifier(0, GENESIS)
        assert verifier.follow(first)
        assert not verifier.follow(wrong)


def test_a_record_forged_with_its_hash_breaks_the_next() -> None:
    stored = chained(records(3))
    forged = Record("api", b"forged")
    hash_ = link(stored[0].hash, 2, forged.kind, forged.cause, forged.at, forged.payload)
    stored[1] = Stored(2, forged.kind, forged.payload, forged.cause, forged.at, hash_)
    assert verify(stored) == FirstBad(3, "changed: it does not match its hash")


@pytest.mark.parametrize(("kind", "payload"), [("apia", b"bc"), ("apiab", b"c"), ("api", b"abc")])
def test_kind_and_payload_do_not_run_together(kind: str, payload: bytes) -> None:
    links = {link(GENESIS, 1, name, 0, 0.0, rest) for name, rest in [("apia", b"bc"), ("apiab", b"c"), ("api", b"abc")]}
    assert len(links) == 3
    assert link(GENESIS, 1, kind, 0, 0.0, payload) in links
