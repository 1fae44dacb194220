"""Forms of filters and scorers: answers about all nodes worked out at once, or about rows when they are asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from pumice.core.session.points.nodes import Volatility

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from pumice.core.session.points.nodes import FloatArray, Rows
    from pumice.core.session.reasons import IntArray

# --- By rows


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


class ReadyCheck:
    """Reason numbers, int32 [N], that follow from node specs and the task alone."""

    volatility = Volatility.STATIC

    def __init__(self, codes: IntArray) -> None:
        self._codes = codes
        # A memoryview: one number costs less than by numpy's own indexing.
        self._at = codes.data

    def reject(self, rows: Rows, /) -> IntArray:
        """int32 [len(rows)]; for all rows a view that must not be written to."""
        return self._codes[rows]

    def reject_one(self, row: int, /) -> int:
        """The reason number of one row."""
        return int(self._at[row])


class KeptCheck(ABC):
    """Reason numbers that are worked out for all nodes whenever something was placed that matters to them."""

    volatility = Volatility.GLOBAL

    @abstractmethod
    def current(self) -> IntArray:
        """Reason number per node, int32 [N], as of now."""

    def reject(self, rows: Rows, /) -> IntArray:
        """int32 [len(rows)]; for all rows a view that must not be written to."""
        return self.current()[rows]

    def reject_one(self, row: int, /) -> int:
        """The reason number of one row."""
        return int(self.current()[row])


class ReadyScore:
    """Scores, float64 [N], weighted already unless `normalised`."""

    volatility = Volatility.STATIC
    normalised = False
    constant: float | None = None

    def __init__(self, scores: FloatArray) -> None:
        self._scores = scores
        # A memoryview: one number costs less than by numpy's own indexing.
        self._at = scores.data

    def score(self, rows: Rows, /) -> FloatArray:
        """float64 [len(rows)]; for all rows a view that must not be written to."""
        return self._scores[rows]

    def score_one(self, row: int, /) -> float:
        """The score of one row."""
        return float(self._at[row])

    def finish(self, raw: FloatArray, /) -> FloatArray:
        """Not normalised."""
        return raw


class KeptScore(ABC):
    """Scores that are worked out for all nodes whenever something was placed that matters to them."""

    volatility = Volatility.GLOBAL
    normalised = True
    constant: float | None = None

    @abstractmethod
    def current(self) -> FloatArray:
        """Raw score per node, float64 [N], as of now."""

    def score(self, rows: Rows, /) -> FloatArray:
        """A new array, float64 [len(rows)]."""
        return self.current()[rows].copy()

    def score_one(self, row: int, /) -> float:
        """The score of one row."""
        return float(self.current()[row])

    @abstractmethod
    def finish(self, raw: FloatArray, /) -> FloatArray:
        """NormalizeScore."""


class WholeScore(ABC):
    """Scores that only the candidates as a set decide: the raw score of a node is its row, `finish` does the work."""

    volatility = Volatility.GLOBAL
    normalised = True
    constant: float | None = None

    def __init__(self, count: int) -> None:
        self._rows: FloatArray = np.arange(count, dtype=np.float64)

    def score(self, rows: Rows, /) -> FloatArray:
        """The row numbers."""
        return self._rows[rows]

    def score_one(self, row: int, /) -> float:
        """The row number."""
        return float(row)

    @abstractmethod
    def of(self, rows: npt.NDArray[np.intp]) -> FloatArray:
        """Weighted scores of the candidates, float64 [len(rows)]."""

    def finish(self, raw: FloatArray, /) -> FloatArray:
        """Return what `of` says of the candidates whose rows these are."""
        return self.of(raw.astype(np.intp))
