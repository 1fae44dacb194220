"""Indexes as a status writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.controllers.batch.counting import read_indexes, written_indexes


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        (set[int](), ""),
        ({4}, "4"),
        ({1, 2}, "1,2"),
        ({0, 1, 2}, "0-2"),
        ({0, 3, 4, 5, 9}, "0,3-5,9"),
    ],
)
def test_how_they_are_written(indexes: set[int], text: str) -> None:
    assert written_indexes(indexes) == text


@given(st.sets(st.integers(0, 60)))
def test_what_is_written_is_read(indexes: set[int]) -> None:
    assert read_indexes(written_indexes(indexes), 61) == indexes


@given(st.sets(st.integers(0, 60)), st.integers(0, 60))
def test_indexes_beyond_the_completions_do_not_count(indexes: set[int], below: int) -> None:
    assert read_indexes(written_indexes(indexes), below) == {index for index in indexes if index < below}


@given(st.one_of(st.none(), st.text(max_size=12)))
def test_anything_can_be_read(text: str | None) -> None:
    assert all(0 <= index < 50 for index in read_indexes(text, 50))
