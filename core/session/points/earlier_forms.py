# SPDX-License-Identifier: Apache-2.0
"""Forms of node rules of earlier versions, for users' plugins that were written for them.

Twelve forms have become the two of rules.py. `pumice.plugins` still has the names of the earlier ones, with a warning.
What a user's filter or scorer prepares in such a form becomes a column rule here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pumice.core.session.points.columns import Clauses, Expression
from pumice.core.session.points.nodes import Volatility
from pumice.core.session.points.rules import ColumnRule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from pumice.core.session.points.columns import Clause, ScoreRule
    from pumice.core.session.points.nodes import Rows
    from pumice.core.session.reasons import IntArray


class EarlierRule:
    """A rule over rows: a subclass has `reject(rows)` or `score(rows)`, and `finish` when normalised."""

    volatility = Volatility.ROW
    normalised = False
    constant: float | None = None


class KeptRule(EarlierRule):
    """A rule over all nodes: a subclass has `current()`."""

    volatility = Volatility.GLOBAL
    normalised = True


class ReadyRule(EarlierRule):
    """A rule with ready answers, [N]."""

    volatility = Volatility.STATIC

    def __init__(self, answers: npt.NDArray[Any]) -> None:
        # Indexing is the whole rule: all answers are there already.
        self.reject = self.score = answers.__getitem__


class ColumnCheck(ColumnRule[np.int32]):
    """A filter by clauses over columns."""

    def __init__(
        self,
        clauses: Sequence[Clause],
        *,
        volatility: Volatility = Volatility.ROW,
        catch_up: Callable[[], object] | None = None,
    ) -> None:
        answer = Clauses(*clauses)

        def caught_up(rows: Rows) -> IntArray:
            if catch_up is not None:
                catch_up()
            return answer(rows)

        super().__init__(caught_up, volatility)


class ColumnScore(ColumnRule[np.float64]):
    """A scorer by a rule over columns."""

    def __init__(self, rule: ScoreRule, *, volatility: Volatility = Volatility.ROW) -> None:
        super().__init__(Expression(rule), volatility)


FORMS: Final[dict[str, tuple[type, str]]] = {
    "ColumnCheck": (ColumnCheck, "ColumnRule(Clauses(...))"),
    "ColumnScore": (ColumnScore, "ColumnRule(Expression(rule))"),
    "KeptCheck": (KeptRule, "ColumnRule(function, Volatility.GLOBAL, follow=version)"),
    "KeptScore": (KeptRule, "ColumnRule(function, Volatility.GLOBAL, follow=version, finish=finish)"),
    "NodeCheck": (EarlierRule, "ColumnRule(function)"),
    "NodeScore": (EarlierRule, "ColumnRule(function)"),
    "ReadyCheck": (ReadyRule, "ColumnRule(codes)"),
    "ReadyScore": (ReadyRule, "ColumnRule(scores)"),
    "RowsCheck": (EarlierRule, "ColumnRule(function)"),
    "RowsScore": (EarlierRule, "ColumnRule(function)"),
}
"""By name: the form, and what is written in its place."""


class Answered:
    """An earlier form's answers, as a function over rows."""

    def __init__(self, given: object, ask: str) -> None:
        self._given, self._ask = given, ask

    def __call__(self, rows: Rows, /) -> Any:
        """Return the answers [len(rows)]."""
        # A KeptRule answers about all nodes and keeps that itself, so it is asked for everything and then cut.
        current = getattr(self._given, "current", None)
        return getattr(self._given, self._ask)(rows) if current is None else current()[rows]

    def one(self, row: int, /) -> Any:
        """Return the answer about one row."""
        # Without a cheaper way of its own, a slice of one keeps the arithmetic, and so the last bit, of the form for
        # many.
        ask = getattr(self._given, f"{self._ask}_one", None)
        return self(slice(row, row + 1))[0] if ask is None else ask(row)


def rule_of(given: ColumnRule[Any] | EarlierRule, ask: str) -> ColumnRule[Any]:
    """Return a user's prepared filter (`ask`: reject) or scorer (score) as a column rule."""
    if isinstance(given, ColumnRule):
        return given
    return ColumnRule(
        Answered(given, ask),
        # GLOBAL is always right: a rule that does not say what it depends on is asked anew after every placement.
        getattr(given, "volatility", Volatility.GLOBAL),
        finish=getattr(given, "finish", None) if getattr(given, "normalised", False) else None,
        constant=getattr(given, "constant", None),
    )
