"""Scores that follow from node specs and pod template alone: worked out once, kept until a node changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.kube.scores import normalise
from core.session.points.nodes import Volatility

if TYPE_CHECKING:
    from core.session.points.nodes import FloatArray, Rows


class StaticScore:
    """Ready-made raw scores; `finish` normalises them when `normalised`, with the highest best unless `reverse`."""

    volatility = Volatility.STATIC
    constant: float | None = None

    def __init__(self, raw: FloatArray, weight: float, *, normalised: bool, reverse: bool = False) -> None:
        self.normalised = normalised
        self._raw, self._weight, self._reverse = raw, weight, reverse
        self._at = raw.data

    def score(self, rows: Rows) -> FloatArray:
        """Raw score per row; for all rows a view that must not be written to."""
        return self._raw[rows]

    def score_one(self, row: int) -> float:
        """The raw score of one row."""
        return float(self._at[row])

    def finish(self, raw: FloatArray) -> FloatArray:
        """DefaultNormalizeScore times the weight."""
        return normalise(raw, self._weight, reverse=self._reverse)


class ConstantScore:
    """The same for every node, whoever the candidates are."""

    volatility = Volatility.STATIC
    normalised = False

    def __init__(self, constant: float, nodes: FloatArray) -> None:
        self.constant: float | None = constant
        self._all = nodes

    def score(self, rows: Rows) -> FloatArray:
        """The constant per row."""
        return self._all[rows]

    def score_one(self, row: int) -> float:
        """The constant."""
        return float(self._all[row])

    def finish(self, raw: FloatArray) -> FloatArray:
        """Not normalised."""
        return raw
