"""Numbers in annotations, percentages and the like."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.texts import whole_number


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", " 1", "\u00b2", "\u0663", "9" * 5_000, str(2**63), "1_0"])
def test_what_is_none(text: str) -> None:
    assert whole_number(text) is None


@given(st.integers(0, 2**63 - 1), st.integers(0, 20))
def test_what_is_one(number: int, zeros: int) -> None:
    assert whole_number("0" * zeros + str(number)) == number
