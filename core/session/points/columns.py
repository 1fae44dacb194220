# SPDX-License-Identifier: Apache-2.0
"""Expressions over columns: a rule stated once over cells, read for many nodes or for one.

What is asked of all nodes in one batch costs nanoseconds a node with numpy; what is asked of the one node that was just
touched costs least with plain numbers (LeastAllocated: half a microsecond, more than ten with arrays of one). A rule is
therefore given as an expression: it learns how to read columns, and answers with a function of where to read them.
`MANY` reads arrays, `ONE` reads numbers; the operators are the same, and so, to the last bit, is the outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import sqrt
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from pumice.core.cached import cached
from pumice.core.session.points.nodes import FloatArray, Rows

if TYPE_CHECKING:
    from pumice.core.session.points.nodes import BoolArray
    from pumice.core.session.reasons import IntArray
    from pumice.core.state.dimensions import CellColumn

V = TypeVar("V", float, FloatArray)
V_co = TypeVar("V_co", covariant=True)
Own_contra = TypeVar("Own_contra", contravariant=True)
At = int | Rows
"""Where to read: a row's number, or rows."""


class Readable(Protocol[V_co]):
    """A column as a rule reads it: `cells[at]` is a number, or a new or borrowed array [len(rows)]."""

    def __getitem__(self, at: object, /) -> V_co: ...


class RowReader(Generic[V]):
    """The columns that a rule reads, and its operations on them besides the operators.

    `floor`, `least`, `most` and `zero_where` may write into their first argument: it must be the rule's own, the
    outcome of an operator and not a cell. An operator that assigns (`left -= own`) writes into it likewise.
    """

    floor: Callable[[V], V]
    least: Callable[[V, float | V], V]
    """The smaller of two."""
    most: Callable[[V, float | V], V]
    """The larger of two."""
    sqrt: Callable[[V], V]
    magnitude: Callable[[V], V]
    """Without its sign."""
    zero_where: Callable[[V, Any], V]
    """0.0 where the second holds, else the first."""
    choose: Callable[[Any, V, V], V]
    """Where the first holds the second, else the third."""

    of: Callable[[CellColumn], Readable[V]]
    """A column's cells."""


class ManyRows(RowReader[FloatArray]):
    """Arrays over rows."""

    def __init__(self) -> None:
        self.floor = lambda value: np.floor(value, out=value)
        # `out`: the value is the rule's own, and a new array for each step would cost more than the step (page faults).
        self.least = lambda value, bound: np.minimum(value, bound, out=value)
        self.most = lambda value, bound: np.maximum(value, bound, out=value)
        self.sqrt, self.magnitude = np.sqrt, np.abs
        self.zero_where = _zeroed
        self.choose = np.where
        self.of = attrgetter("many")


class OneRow(RowReader[float]):
    """Plain numbers of one row."""

    def __init__(self) -> None:
        # value // 1.0: the floor as a float, where math.floor would make a whole number.
        self.floor = (1.0).__rfloordiv__
        self.least, self.most, self.sqrt, self.magnitude = min, max, sqrt, abs
        self.zero_where = lambda value, where: 0.0 if where else value
        self.choose = lambda where, then, other: then if where else other
        self.of = attrgetter("one")


def _zeroed(values: FloatArray, where: BoolArray) -> FloatArray:
    values[where] = 0.0
    return values


MANY: Final = ManyRows()
ONE: Final = OneRow()


class ScoreRule(Protocol):
    """A score as an expression over columns."""

    def __call__(self, read: RowReader[V], /) -> Callable[[At], V]:
        """Return a function: (reader of columns) -> (rows) -> the score, a new array."""
        ...


class OwnScoreRule(Protocol[Own_contra]):
    """A score as an expression over columns and a task's own request."""

    def __call__(self, read: RowReader[V], /) -> Callable[[Own_contra, At], V]:
        """Return a function: (reader of columns) -> (own request, rows) -> the score, a new array."""
        ...


class Expression:
    """A score as a function over rows that may be read of one row as well; each form is made on first use."""

    def __init__(self, rule: ScoreRule) -> None:
        self._rule = rule

    @cached
    def _many(self) -> Callable[[Rows], FloatArray]:
        return self._rule(MANY)

    @cached
    def one(self) -> Callable[[int], float]:
        """Return a function (row) -> the score."""
        return self._rule(ONE)

    def __call__(self, rows: Rows, /) -> FloatArray:
        """Return the scores, float64 [len(rows)]."""
        return self._many(rows)


class ForTasks(Generic[Own_contra]):
    """A rule for the tasks of a whole session. Its compiled form answers about each of them: compiling it for every
    template costs more than two dozen answers about one row.
    """

    def __init__(self, rule: OwnScoreRule[Own_contra]) -> None:
        self._rule = rule
        self._made: dict[RowReader[Any], Callable[[Own_contra, At], Any]] = {}

    def of(self, own: Own_contra) -> Expression:
        """Return the rule for a task with this request."""
        return Expression(lambda read: partial(self._made.get(read) or self._make(read), own))

    def _make(self, read: RowReader[V]) -> Callable[[Own_contra, At], V]:
        # Once a session for each of the two readers; a task's own request is bound afterwards, by `partial`.
        made = self._made[read] = self._rule(read)
        return made


class MaskRule(Protocol):
    """A condition as an expression over columns."""

    def __call__(self, read: RowReader[V], /) -> Callable[[At], bool | BoolArray]:
        """Return a function: (reader of columns) -> (rows) -> True where the filter passes."""
        ...


class Clause(NamedTuple):
    """Nodes that a filter refuses, with the number of the reason."""

    refuses: MaskRule
    code: int


class Clauses:
    """Reason numbers by clauses over columns: the first that refuses a node is the reason."""

    def __init__(self, *clauses: Clause) -> None:
        # Reversed: the first clause is written last, so its reason is the one that stays.
        self._many = [(clause.refuses(MANY), np.int32(clause.code)) for clause in reversed(clauses)]
        self._one = [(clause.refuses(ONE), clause.code) for clause in clauses]

    def __call__(self, rows: Rows, /) -> IntArray:
        """Return the reason number per row, int32 [len(rows)], a new array."""
        codes: IntArray | None = None
        refused: Any = ()
        for refuses, code in self._many:
            refused = refuses(rows)
            if codes is not None:
                codes[refused] = code
            elif np.count_nonzero(refused):
                codes = np.multiply(refused, code)
        return np.zeros(len(refused), dtype=np.int32) if codes is None else codes

    def one(self, row: int, /) -> int:
        """Return the reason number of one row, 0 where it passes."""
        for refuses, code in self._one:
            if refuses(row):
                return code
        return 0
