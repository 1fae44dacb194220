"""Single numbers of a column: a memoryview costs a third of numpy's indexing and yields plain numbers; both see the
same memory.
"""

from __future__ import annotations

from collections.abc import MutableSequence

import numpy as np
import numpy.typing as npt


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
