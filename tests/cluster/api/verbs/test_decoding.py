"""Nulls in objects are absent fields, in place and in a copy alike."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.api.verbs.requests import drop_nulls, without_nulls

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=2), VALUES, max_size=4))
def test_a_copy_without_nulls_is_what_dropping_them_leaves(obj: dict[str, Any]) -> None:
    before = copy.deepcopy(obj)
    found = without_nulls(obj)
    assert obj == before
    drop_nulls(obj)
    assert found == obj


def test_nothing_of_a_copy_is_shared() -> None:
    obj: dict[str, Any] = {"a": [{"b": {}}], "c": {"d": [None, []]}}
    found = without_nulls(obj)
    found["a"][0]["b"]["x"] = found["c"]["d"][1] = 1
    assert obj == {"a": [{"b": {}}], "c": {"d": [None, []]}}
