"""Deltas: what is applied to the old is the new, order of keys and all, and little is said when little changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.replica.delta import Cells, Entries, Keys, Whole, applied, columns_of, delta

things = st.sampled_from([object() for _ in range(6)])
lists = st.lists(st.one_of(st.integers(), things), max_size=8)
dicts = st.dictionaries(st.sampled_from("abcdef"), st.one_of(st.integers(), things), max_size=6)
arrays = st.lists(st.sampled_from([0.0, 1.0, 2.5, -0.5]), max_size=8).map(np.array)


def told_apart(column: Any) -> Any:
    """Equal for columns that hold the very same things in the same order."""
    if isinstance(column, np.ndarray):
        return np.asarray(column, dtype=np.float64).tobytes()
    if isinstance(column, dict):
        return [(key, told_apart(column[key])) for key in column]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(column, list):
        return [told_apart(each) for each in column]  # pyright: ignore[reportUnknownVariableType]
    return column if isinstance(column, int) else id(column)


def same(left: Any, right: Any) -> bool:
    return bool(told_apart(left) == told_apart(right))


@given(st.sampled_from([lists, dicts, arrays]).flatmap(lambda kind: st.tuples(kind, kind)))
def test_the_old_with_the_delta_is_the_new(pair: tuple[Any, Any]) -> None:
    before, after = {"column": pair[0], "other": 1}, {"column": pair[1], "other": 1}
    assert same(applied(before, delta(before, after)), after)
    assert same(applied({}, delta(None, after)), after)
    assert not delta(after, after)


def test_an_array_tells_its_changed_cells() -> None:
    before = np.zeros((3, 5))
    after = before.copy()
    after[1, 2] = 7.0
    change = delta({"x": before}, {"x": after})["x"]
    assert isinstance(change, Cells)
    assert change.where.tolist() == [7]
    assert change.values.tolist() == [7.0]
    assert isinstance(delta({"x": before}, {"x": before + 1})["x"], Whole)
    assert isinstance(delta({"x": before}, {"x": np.zeros((3, 6))})["x"], Whole)


def test_a_list_tells_what_is_another_thing() -> None:
    one, two = [1], [1]
    assert delta({"x": [one, one]}, {"x": [one, two]})["x"] == Entries(2, {1: two})
    assert delta({"x": [one, two]}, {"x": [one]})["x"] == Entries(1, {})
    assert not delta({"x": ["a", 1]}, {"x": ["a", 1]})


def test_a_dictionary_tells_its_order_only_where_it_must() -> None:
    before = {"a": 1, "b": 2, "c": 3}
    assert delta({"x": before}, {"x": {"a": 1, "c": 4, "d": 5}})["x"] == Keys(["b"], {"c": 4, "d": 5}, None)
    moved = {"b": 2, "c": 3, "a": 1}
    assert delta({"x": before}, {"x": moved})["x"] == Keys([], {}, ["b", "c", "a"])


def test_columns_are_called_by_their_part() -> None:
    @dataclass
    class Part:
        idle: int
        memo: dict[str, int]

    @dataclass
    class Whole:
        nodes: Part
        queues: list[int]
        kept: dict[str, int]

    assert columns_of(Whole(Part(1, {}), [2], {})) == {"nodes.idle": 1, "queues": [2]}
