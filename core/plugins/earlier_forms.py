"""Forms of node rules of earlier versions, for users' plugins that were written for them.

Twelve forms have become the two of core/session/points/rules.py. `pumice.plugins` still has the names of the earlier
ones, and warns whoever imports one. What a user's filter or scorer prepares in such a form becomes a column rule here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.core.session.points.columns import Clauses, Expression
from pumice.core.session.points.nodes import Volatility
from pumice.core.session.points.rules import ColumnRule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.core.session.points.columns import Clause, ScoreRule
    from pumice.core.session.points.nodes import FloatArray, Rows
    from pumice.core.session.reasons import IntArray


class EarlierRule:
    """Says of rows what it says, by methods: `reject` or `score`, or `current` of all nodes."""

    volatility = Volatility.ROW
    normalised = False
    constant: float | None = None


class RowsCheck(EarlierRule):
    """A subclass has `reject(rows)`."""


class RowsScore(EarlierRule):
    """A subclass has `score(rows)`."""


class KeptCheck(EarlierRule):
    """A subclass has `current()`."""

    volatility = Volatility.GLOBAL


class KeptScore(EarlierRule):
    """A subclass has `current()` and `finish(raw)`."""

    volatility = Volatility.GLOBAL
    normalised = True


class ReadyCheck(EarlierRule):
    """Reason numbers, int32 [N]."""

    volatility = Volatility.STATIC

    def __init__(self, codes: IntArray) -> None:
        self.reject = codes.__getitem__


class ReadyScore(EarlierRule):
    """Scores, float64 [N]."""

    volatility = Volatility.STATIC

    def __init__(self, scores: FloatArray) -> None:
        self.score = scores.__getitem__


class ColumnCheck(EarlierRule):
    """A filter by clauses over columns."""

    def __init__(
        self,
        clauses: Sequence[Clause],
        *,
        volatility: Volatility = Volatility.ROW,
        catch_up: Callable[[], object] | None = None,
    ) -> None:
        self.volatility = volatility
        self._answer, self._catch_up = Clauses(*clauses), catch_up

    def reject(self, rows: Rows, /) -> IntArray:
        """Reason numbers [len(rows)]."""
        if self._catch_up is not None:
            self._catch_up()
        return self._answer(rows)


class ColumnScore(EarlierRule):
    """A scorer by a rule over columns."""

    def __init__(self, rule: ScoreRule, *, volatility: Volatility = Volatility.ROW) -> None:
        self.volatility = volatility
        self.score = Expression(rule)


FORMS: Final[dict[str, tuple[type, str]]] = {
    "ColumnCheck": (ColumnCheck, "ColumnRule(Clauses(...))"),
    "ColumnScore": (ColumnScore, "ColumnRule(Expression(rule))"),
    "KeptCheck": (KeptCheck, "ColumnRule(function, Volatility.GLOBAL, follow=version)"),
    "KeptScore": (KeptScore, "ColumnRule(function, Volatility.GLOBAL, follow=version, finish=finish)"),
    "NodeCheck": (EarlierRule, "ColumnRule(function)"),
    "NodeScore": (EarlierRule, "ColumnRule(function)"),
    "ReadyCheck": (ReadyCheck, "ColumnRule(codes)"),
    "ReadyScore": (ReadyScore, "ColumnRule(scores)"),
    "RowsCheck": (RowsCheck, "ColumnRule(function)"),
    "RowsScore": (RowsScore, "ColumnRule(function)"),
}
"""By name: the form, and what is written in its place."""


class Answered:
    """What an earlier form says, as a function over rows."""

    def __init__(self, given: Any, ask: str) -> None:
        self._given, self._ask = given, ask

    def __call__(self, rows: Rows, /) -> Any:
        """Return the answers [len(rows)]."""
        current = getattr(self._given, "current", None)
        return getattr(self._given, self._ask)(rows) if current is None else current()[rows]

    def one(self, row: int, /) -> Any:
        """Return the answer about one row."""
        ask = getattr(self._given, f"{self._ask}_one", None)
        return self(slice(row, row + 1))[0] if ask is None else ask(row)


def rule_of(given: ColumnRule[Any] | EarlierRule, ask: str) -> ColumnRule[Any]:
    """Return what a user's filter (`ask`: reject) or scorer (score) prepared as a column rule."""
    if isinstance(given, ColumnRule):
        return given
    return ColumnRule(
        Answered(given, ask),
        getattr(given, "volatility", Volatility.GLOBAL),
        finish=getattr(given, "finish", None) if getattr(given, "normalised", False) else None,
        constant=getattr(given, "constant", None),
    )
