"""Single numbers of a column: a memoryview costs a third of numpy's indexing and yields plain numbers; both see the
same memory.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class CellColumn(NamedTuple):
    """Numbers or truth values [N]: the array, and the same memory number by number."""

    many: npt.NDArray[Any]
    one: Sequence[Any]


def cells_of(array: npt.NDArray[Any]) -> CellColumn:
    """A contiguous one-dimensional array as such a column; changes of the array are seen."""
    return CellColumn(array, memoryview(array))  # type: ignore[arg-type]


def floats(column: npt.NDArray[np.float64]) -> MutableSequence[float]:
    """A one-dimensional float64 column, number by number."""
    return memoryview(column)  # type: ignore[return-value,arg-type]


def integers(column: npt.NDArray[np.integer | np.bool_]) -> MutableSequence[int]:
    """A one-dimensional integer or boolean column, number by number."""
    return memoryview(column)  # type: ignore[return-value,arg-type]


def lines(table: npt.NDArray[np.float64]) -> list[MutableSequence[float]]:
    """The lines of a float64 table, each number by number."""
    return list(map(memoryview, table))  # type: ignore[arg-type]


def integer_lines(table: npt.NDArray[np.integer]) -> list[MutableSequence[int]]:
    """The lines of an integer table, each number by number."""
    return list(map(memoryview, table))  # type: ignore[arg-type]
