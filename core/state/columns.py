"""Growing arrays: capacity doubles, rows are reused through a free list, a dimension may be added in front."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def grown(array: npt.NDArray[np.generic], rows: int) -> npt.NDArray[np.generic]:
    """A copy with at least `rows` entries on the last axis; new entries are zero."""
    capacity = max(rows, 2 * array.shape[-1], 16)
    wider = np.zeros((*array.shape[:-1], capacity), dtype=array.dtype)
    wider[..., : array.shape[-1]] = array
    return wider


def heightened(array: npt.NDArray[np.generic], dimensions: int) -> npt.NDArray[np.generic]:
    """A copy with at least `dimensions` entries on the first axis; new entries are zero."""
    higher = np.zeros((max(dimensions, 2 * array.shape[0]), array.shape[1]), dtype=array.dtype)
    higher[: array.shape[0]] = array
    return higher


class Rows:
    """Hands out row numbers; freed ones come back first."""

    def __init__(self) -> None:
        self.used = 0
        self._free: list[int] = []

    def take(self) -> int:
        """A row nobody uses."""
        if self._free:
            return self._free.pop()
        self.used += 1
        return self.used - 1

    def give_back(self, row: int) -> None:
        """The row may be taken again."""
        self._free.append(row)
