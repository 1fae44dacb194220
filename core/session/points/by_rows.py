"""Filters and scorers that state what they say of rows, or of one row; the other follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from pumice.core.session.points.nodes import Volatility

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.session.points.nodes import FloatArray, Rows
    from pumice.core.session.reasons import IntArray


def each(count: int, rows: Rows) -> Iterable[int]:
    """The row numbers behind rows, of so many nodes."""
    return range(count)[rows] if isinstance(rows, slice) else rows.tolist()


class RowsCheck(ABC):
    """A filter that says of many rows what it says of one."""

    volatility = Volatility.ROW

    @abstractmethod
    def reject(self, rows: Rows, /) -> IntArray:
        """Reason number per row, int32 [len(rows)]."""

    def reject_one(self, row: int, /) -> int:
        """Reason number of one row, 0 where it passes."""
        return int(self.reject(slice(row, row + 1))[0])


class RowCheck(ABC):
    """A filter that looks at one node after the other, of `count`."""

    volatility = Volatility.ROW

    def __init__(self, count: int) -> None:
        self._count = count

    def reject(self, rows: Rows, /) -> IntArray:
        """Reason number per row, int32 [len(rows)]."""
        return np.array([self.reject_one(row) for row in each(self._count, rows)], dtype=np.int32)

    @abstractmethod
    def reject_one(self, row: int, /) -> int:
        """Reason number of one row, 0 where it passes."""


class RowsScore(ABC):
    """A scorer that says of many rows what it says of one, weighted already."""

    volatility = Volatility.ROW
    normalised = False
    constant: float | None = None

    @abstractmethod
    def score(self, rows: Rows, /) -> FloatArray:
        """Score per row, float64 [len(rows)], a new array."""

    def score_one(self, row: int, /) -> float:
        """Score of one row."""
        return float(self.score(slice(row, row + 1))[0])

    def finish(self, raw: FloatArray, /) -> FloatArray:
        """Not normalised."""
        return raw


class RowScore(ABC):
    """A scorer that looks at one node after the other, of `count`."""

    volatility = Volatility.ROW
    normalised = False
    constant: float | None = None

    def __init__(self, count: int) -> None:
        self._count = count

    def score(self, rows: Rows, /) -> FloatArray:
        """Score per row, float64 [len(rows)], a new array."""
        return np.array([self.score_one(row) for row in each(self._count, rows)], dtype=np.float64)

    @abstractmethod
    def score_one(self, row: int, /) -> float:
        """Score of one row."""

    def finish(self, raw: FloatArray, /) -> FloatArray:
        """Not normalised."""
        return raw
