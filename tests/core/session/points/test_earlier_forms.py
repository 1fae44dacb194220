"""What a user's plugin prepares in a form of earlier versions decides as before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

import pumice.plugins
from pumice.core.session.points.columns import Clause
from pumice.core.session.points.earlier_forms import FORMS, rule_of
from pumice.core.session.points.nodes import Volatility
from pumice.core.state.dimensions import CellColumn, cells_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.session.points.columns import At, RowReader, V
    from pumice.core.session.points.nodes import BoolArray

ALL = slice(None)
SOME = np.array([2, 0], dtype=np.intp)
CODES = np.array([0, 5, 6], dtype=np.int32)
SCORES = np.array([1.0, 2.5, 4.0])


def earlier(name: str) -> Any:
    with pytest.warns(FutureWarning, match=rf"pumice\.plugins\.{name} is of earlier versions: write ColumnRule\("):
        return getattr(pumice.plugins, name)


def of_all(values: Any) -> Callable[[Any], Any]:
    """A method that says of all nodes."""
    return lambda _: values


def of_many(values: Any) -> Callable[[Any, Any], Any]:
    """A method that says of rows."""
    return lambda _, rows: values[rows]


def of_one(values: Any) -> Callable[[Any, int], Any]:
    """A method that says of one row, as a plain number."""
    return lambda _, row: values[row].item()


def doubled(_: Any, raw: Any) -> Any:
    return raw * 2


def mine(name: str, **methods: Any) -> Any:
    return type("Mine", (earlier(name),), methods)()


class Is(NamedTuple):
    """A column is just that number."""

    column: CellColumn
    number: int

    def __call__(self, read: RowReader[V], /) -> Callable[[At], bool | BoolArray]:
        column = read.of(self.column)
        return lambda at: column[at] == self.number


class Copied(NamedTuple):
    """The cells of a column."""

    column: CellColumn

    def __call__(self, read: RowReader[V], /) -> Callable[[At], V]:
        column = read.of(self.column)
        return lambda at: column[at] + 0.0


CLAUSES = [Clause(Is(cells_of(CODES), code), code) for code in (5, 6)]
CHECKS: dict[str, Callable[[], Any]] = {
    "ReadyCheck": lambda: earlier("ReadyCheck")(CODES),
    "RowsCheck": lambda: mine("RowsCheck", reject=of_many(CODES)),
    "NodeCheck": lambda: mine("NodeCheck", reject=of_many(CODES), reject_one=of_one(CODES)),
    "KeptCheck": lambda: mine("KeptCheck", current=of_all(CODES)),
    "ColumnCheck": lambda: earlier("ColumnCheck")(CLAUSES, catch_up=list),
}
SCORED: dict[str, Callable[[], Any]] = {
    "ReadyScore": lambda: earlier("ReadyScore")(SCORES),
    "RowsScore": lambda: mine("RowsScore", score=of_many(SCORES)),
    "NodeScore": lambda: mine("NodeScore", score=of_many(SCORES), score_one=of_one(SCORES)),
    "KeptScore": lambda: mine("KeptScore", current=of_all(SCORES), finish=doubled),
    "ColumnScore": lambda: earlier("ColumnScore")(Copied(cells_of(SCORES))),
}
VOLATILITY = {"Ready": Volatility.STATIC, "Kept": Volatility.GLOBAL}


def test_every_form_of_earlier_versions_is_tried() -> None:
    assert {*CHECKS, *SCORED} == set(FORMS)


@pytest.mark.parametrize(("name", "ask", "expected"), [
    *[(name, "reject", CODES) for name in CHECKS], *[(name, "score", SCORES) for name in SCORED],
])  # fmt: skip
def test_an_earlier_form_says_as_a_column_rule_what_it_said(name: str, ask: str, expected: Any) -> None:
    rule = rule_of({**CHECKS, **SCORED}[name](), ask)
    assert rule.many(ALL).tolist() == expected.tolist()
    assert rule.many(SOME).tolist() == expected[SOME].tolist()
    assert [rule.one(row) for row in range(3)] == expected.tolist()
    assert rule.volatility is VOLATILITY.get(name.removesuffix("Check").removesuffix("Score"), Volatility.ROW)


def test_only_a_score_that_said_so_is_finished() -> None:
    finish = rule_of(SCORED["KeptScore"](), "score").finish
    assert finish is not None
    assert finish(SCORES).tolist() == [2.0, 5.0, 8.0]
    assert rule_of(SCORED["RowsScore"](), "score").finish is None


def test_what_never_was_a_form_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Form'"):
        pumice.plugins.Form  # noqa: B018
