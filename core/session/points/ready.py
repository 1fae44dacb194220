"""Answers about nodes that follow from node specs and the task alone: worked out once, then looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.session.points.nodes import Volatility

if TYPE_CHECKING:
    from core.session.points.nodes import FloatArray, Rows
    from core.session.reasons import IntArray


class ReadyCheck:
    """Reason numbers, int32 [N]."""

    volatility = Volatility.STATIC

    def __init__(self, codes: IntArray) -> None:
        self._codes = codes
        self._at = codes.data

    def reject(self, rows: Rows) -> IntArray:
        """int32 [len(rows)]; for all rows a view that must not be written to."""
        return self._codes[rows]

    def reject_one(self, row: int) -> int:
        """The reason number of one row."""
        return int(self._at[row])


class ReadyScore:
    """Scores, float64 [N], weighted already."""

    volatility = Volatility.STATIC
    normalised = False
    constant: float | None = None

    def __init__(self, scores: FloatArray) -> None:
        self._scores = scores
        self._at = scores.data

    def score(self, rows: Rows) -> FloatArray:
        """float64 [len(rows)]; for all rows a view that must not be written to."""
        return self._scores[rows]

    def score_one(self, row: int) -> float:
        """The score of one row."""
        return float(self._at[row])

    def finish(self, raw: FloatArray) -> FloatArray:
        """Not normalised."""
        return raw
