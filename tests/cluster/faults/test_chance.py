"""Throws that come out the same every time."""

from hashlib import blake2b

import pytest

from pumice.cluster.faults.decisions import chance


@pytest.mark.parametrize("seed", [0, 7, -3, 2**70])
@pytest.mark.parametrize("what", ["", "bind default/p #1", "news\x001", "ü"])
def test_it_is_the_hash_of_both(seed: int, what: str) -> None:
    digest = blake2b(f"{seed}\0{what}".encode(), digest_size=7).digest()
    assert chance(seed, what) == chance(seed, what) == (int.from_bytes(digest, "big") >> 3) / 2**53


def test_it_spreads_over_the_whole_way() -> None:
    thrown = [chance(1, f"bind default/p #{number}") for number in range(10_000)]
    tenths = [sum(tenth / 10 <= each < (tenth + 1) / 10 for each in thrown) for tenth in range(10)]
    assert sum(tenths) == 10_000
    assert all(850 < each < 1150 for each in tenths)
