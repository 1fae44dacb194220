"""Moments in and out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.units import format_moment, parse_moment


@given(st.integers(0, 4_000_000_000))
def test_what_is_written_reads_back(seconds: int) -> None:
    assert parse_moment(format_moment(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1970-01-01T00:01:00Z", 60), ("1970-01-01T01:00:00+01:00", 0), ("12.5", 12.5), ("1970-01-01T00:00:00.25Z", 0.25)],
)
def test_reading(text: str, seconds: float) -> None:
    assert parse_moment(text) == seconds


@pytest.mark.parametrize("text", ["yesterday", "2020-01-01T00:00:00", ""])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_moment(text)
