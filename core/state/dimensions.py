# SPDX-License-Identifier: Apache-2.0
"""Columns that grow, and the index of each resource in them."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pumice.core.resources import Resource

# --- Growing arrays

FloatArray = npt.NDArray[np.float64]
N = TypeVar("N", bound=np.generic)


def grown(array: npt.NDArray[N], rows: int) -> npt.NDArray[N]:
    """Return a copy with at least `rows` entries on the last axis; new entries are zero."""
    # Doubled: the cost of all copying stays in proportion to the number of rows.
    capacity = max(rows, 2 * array.shape[-1], 16)
    wider = np.zeros((*array.shape[:-1], capacity), dtype=array.dtype)
    wider[..., : array.shape[-1]] = array
    return wider


def heightened(array: npt.NDArray[N], dimensions: int) -> npt.NDArray[N]:
    """Return a copy with at least `dimensions` entries on the first axis; new entries are zero."""
    higher = np.zeros((max(dimensions, 2 * array.shape[0]), array.shape[1]), dtype=array.dtype)
    higher[: array.shape[0]] = array
    return higher


LEAST_ROOM: Final = 64
"""Rows that a table has room for from the beginning, a power of two: so few cost a session nothing."""


class Rows:
    """Hands out row numbers; freed ones come first."""

    def __init__(self) -> None:
        self.used = 0
        self._free: list[int] = []

    def take(self) -> int:
        """Return a free row."""
        if self._free:
            return self._free.pop()
        self.used += 1
        return self.used - 1

    @property
    def room(self) -> int:
        """Return how many rows a session's columns have: up to an eighth more than are used. In other memory nothing
        that was kept for the last sessions counts, so not every new row may ask for more.
        """
        step = max(LEAST_ROOM, 1 << max(self.used.bit_length() - 3, 0))
        return -(-self.used // step) * step or LEAST_ROOM

    def give_back(self, row: int) -> None:
        """Free the row."""
        self._free.append(row)


# --- Cells of a column
# A memoryview costs a third of numpy's indexing and yields plain numbers; both see the same memory.


class CellColumn(NamedTuple):
    """Numbers or truth values [N]: the array, and the same memory number by number."""

    many: npt.NDArray[Any]
    one: Sequence[Any]


def cells_of(array: npt.NDArray[Any]) -> CellColumn:
    """Return a contiguous one-dimensional array as such a column; changes of the array show in it."""
    return CellColumn(array, memoryview(array))  # type: ignore[arg-type]


def floats(column: npt.NDArray[np.float64]) -> MutableSequence[float]:
    """Return a one-dimensional float64 column, number by number."""
    return memoryview(column)  # type: ignore[return-value,arg-type]


def integers(column: npt.NDArray[np.integer | np.bool_]) -> MutableSequence[int]:
    """Return a one-dimensional integer or boolean column, number by number."""
    return memoryview(column)  # type: ignore[return-value,arg-type]


def lines(table: npt.NDArray[np.float64]) -> list[MutableSequence[float]]:
    """Return the lines of a float64 table, each number by number."""
    return list(map(memoryview, table))  # type: ignore[arg-type]


def integer_lines(table: npt.NDArray[np.integer]) -> list[MutableSequence[int]]:
    """Return the lines of an integer table, each number by number."""
    return list(map(memoryview, table))  # type: ignore[arg-type]


CPU, MEMORY, PODS = 0, 1, 2


class Dimensions:
    """An append-only registry of resource names.

    cpu (milli-cores), memory (bytes) and pods (a count) come first, scalars as seen.
    """

    def __init__(self) -> None:
        self.names: list[str] = ["cpu", "memory", "pods"]
        self._index: dict[str, int] = {name: i for i, name in enumerate(self.names)}
        self.has_named_none = False  # whether a resource has named a scalar with 0

    def copy(self) -> Dimensions:
        """Return an independent registry with equal names at equal places."""
        twin = Dimensions()
        twin.names, twin._index = list(self.names), dict(self._index)
        twin.has_named_none = self.has_named_none
        return twin

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        """Return the row of `name`, added at the end when it is new."""
        found = self._index.get(name)
        if found is None:
            found = self._index[name] = len(self.names)
            self.names.append(name)
        return found

    def items(self, resource: Resource) -> tuple[tuple[int, float], ...]:
        """Yield (row, value) of cpu, memory, and each scalar that the resource names, scalars in name order."""
        scalars = resource.scalars or {}
        if not all(scalars.values()):
            self.has_named_none = True
        return (
            (CPU, resource.milli_cpu),
            (MEMORY, resource.memory),
            *((self.index(name), scalars[name]) for name in sorted(scalars)),
        )

    def resource(self, values: list[float]) -> Resource:
        """Return a resource from a column's values; scalars that are 0 are left out."""
        scalars = {self.names[i]: v for i, v in enumerate(values) if i >= PODS and v != 0.0}
        return Resource(values[CPU], values[MEMORY], scalars)
