"""Scores that follow from node specs and pod template alone: worked out once, kept until a node changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.kube.scores import normalise
from pumice.core.session.points.ready import ReadyScore

if TYPE_CHECKING:
    from pumice.core.session.points.nodes import FloatArray


class StaticScore(ReadyScore):
    """Ready-made raw scores; `finish` normalises them when `normalised`, with the highest best unless `reverse`."""

    def __init__(self, raw: FloatArray, weight: float, *, normalised: bool, reverse: bool = False) -> None:
        super().__init__(raw)
        self.normalised = normalised
        self._weight, self._reverse = weight, reverse

    def finish(self, raw: FloatArray, /) -> FloatArray:
        """DefaultNormalizeScore times the weight."""
        return normalise(raw, self._weight, reverse=self._reverse)


class ConstantScore(ReadyScore):
    """One score for every node, whoever the candidates are."""

    def __init__(self, constant: float, nodes: FloatArray) -> None:
        super().__init__(nodes)
        self.constant: float | None = constant
