"""A column rule is asked as often as what it reads can change, and says of one row what it says of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.session.points.columns import Clause, Clauses
from pumice.core.session.points.nodes import Rows, Volatility
from pumice.core.session.points.rules import ByNode, ColumnRule, of_candidates
from pumice.core.state.dimensions import CellColumn, cells_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.session.points.columns import At, RowReader, V
    from pumice.core.session.points.nodes import BoolArray

ALL = slice(None)
SOME = np.array([2, 0], dtype=np.intp)
VALUES = np.array([1.5, -2.0, 7.25])


class Holds(NamedTuple):
    """A column is more than a number."""

    column: CellColumn
    number: float = 0

    def __call__(self, read: RowReader[V], /) -> Callable[[At], bool | BoolArray]:
        column = read.of(self.column)
        return lambda at: column[at] > self.number


class Asked:
    """A function over rows that remembers what it was asked."""

    def __init__(self) -> None:
        self.rows: list[Rows] = []
        self.values = VALUES.copy()

    def __call__(self, rows: Rows, /) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        self.rows.append(rows)
        return self.values[rows].copy()


def said_by(rule: ColumnRule[np.float64]) -> tuple[list[float], list[float], list[float]]:
    return rule.many(ALL).tolist(), rule.many(SOME).tolist(), [rule.one(row) for row in range(3)]


SAID = VALUES.tolist(), VALUES[SOME].tolist(), VALUES.tolist()


@pytest.mark.parametrize("volatility", Volatility)
def test_a_rule_says_of_one_row_what_it_says_of_many(volatility: Volatility) -> None:
    said = said_by(ColumnRule(Asked(), volatility))
    assert said == SAID
    assert {type(number) for number in said[2]} == {float}


def test_an_array_is_an_answer_for_good() -> None:
    rule = ColumnRule(VALUES, Volatility.ROW)
    assert rule.volatility is Volatility.STATIC
    assert said_by(rule) == SAID
    codes = ColumnRule(np.array([0, 3], dtype=np.int32))
    assert [(codes.one(row), type(codes.one(row))) for row in range(2)] == [(0, int), (3, int)]


def test_a_static_rule_is_asked_once_about_all_nodes() -> None:
    asked = Asked()
    rule = ColumnRule(asked, Volatility.STATIC)
    assert said_by(rule) == said_by(rule)
    assert asked.rows == [ALL]


def test_a_followed_rule_is_asked_again_when_the_version_is_another() -> None:
    asked, version = Asked(), [0]
    rule = ColumnRule(asked, Volatility.GLOBAL, follow=lambda: version[0])
    assert said_by(rule) == said_by(rule) == SAID
    assert asked.rows == [ALL]
    version[0], asked.values = 1, VALUES + 1.0
    assert rule.one(1) == -1.0
    assert rule.many(ALL).tolist() == (VALUES + 1.0).tolist()
    assert asked.rows == [ALL, ALL]


def test_a_rule_of_rows_follows_before_it_answers() -> None:
    column = np.zeros(3, dtype=np.int32)

    def follow() -> int:
        column[1] += 1
        return int(column[1])

    clauses = Clauses(Clause(Holds(cells_of(column), 1), 7))
    rule = ColumnRule(clauses, follow=follow)
    assert rule.many(ALL).tolist() == [0, 0, 0]
    assert rule.many(ALL).tolist() == [0, 7, 0]
    assert (rule.one(0), rule.one(1)) == (0, 7)
    assert column[1] == 4


def test_a_rule_without_anything_kept_is_asked_about_the_rows_in_question() -> None:
    asked = Asked()
    rule = ColumnRule(asked)
    rule.many(SOME)
    rule.one(1)
    assert asked.rows[0] is SOME
    assert asked.rows[1] == slice(1, 2)


def test_a_function_of_one_node_is_asked_row_by_row() -> None:
    rule = ColumnRule(ByNode(3, lambda row: row * 2, np.int32))
    assert rule.many(ALL).tolist() == [0, 2, 4]
    assert rule.many(SOME).tolist() == [4, 0]
    assert rule.many(slice(1, 2)).dtype == np.int32
    assert rule.one(2) == 4


def test_the_candidates_as_a_set_decide() -> None:
    rule = of_candidates(3, lambda rows: rows * 10.0 / len(rows))
    assert (rule.volatility, rule.one(2)) == (Volatility.GLOBAL, 2.0)
    assert rule.finish is not None
    assert rule.finish(rule.many(SOME)).tolist() == [10.0, 0.0]


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), max_size=3))
def test_the_first_clause_that_refuses_is_the_reason(told: list[list[bool]]) -> None:
    clauses = Clauses(*[Clause(Holds(cells_of(np.array(each))), number) for number, each in enumerate(told, 1)])
    expected = [next((n for n, each in enumerate(told, 1) if each[row]), 0) for row in range(3)]
    assert [clauses.one(row) for row in range(3)] == expected
    if told:
        assert clauses(ALL).tolist() == expected
