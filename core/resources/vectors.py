"""Resources as vectors, and the comparisons scheduling needs over columns of nodes.

Columns are ``[R, N]``: dimension first, so that one dimension over all nodes is contiguous; axes in front broadcast.
A scalar that a resource does not have is 0, which is Volcano's default ZERO.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from core.resources.amounts import CPU, MEMORY, MIN_RESOURCE, PODS, Amounts
from core.resources.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

RequestItem = tuple[int, float]
"""One dimension a request has: (index, amount)."""


class Dimensions:
    """Resource names and their indices; it only grows, so an index holds for ever. cpu is 0, memory 1, pods 2."""

    __slots__ = ("_index", "names")

    def __init__(self, scalars: Iterable[str] = ()) -> None:
        self.names: list[str] = [CPU, MEMORY, PODS]
        self._index: dict[str, int] = {CPU: CPU_INDEX, MEMORY: MEMORY_INDEX, PODS: PODS_INDEX}
        for name in scalars:
            self.index(name)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def index(self, name: str) -> int:
        """The index of a name, which is given the next one when it is new."""
        found = self._index.get(name)
        if found is None:
            found = self._index[name] = len(self.names)
            self.names.append(name)
        return found

    def see(self, resource: Amounts) -> None:
        """Give every scalar of a resource an index, new ones in key order."""
        for name in sorted(resource.scalars or ()):
            self.index(name)


CPU_INDEX: Final = 0
MEMORY_INDEX: Final = 1
PODS_INDEX: Final = 2


def to_vector(resource: Amounts, dims: Dimensions) -> Floats:
    """``[R]`` float64 amounts, R being ``len(dims)`` afterwards: scalars not seen before get an index."""
    dims.see(resource)
    vector = np.zeros(len(dims))
    vector[CPU_INDEX] = resource.milli_cpu
    vector[MEMORY_INDEX] = resource.memory
    for name, amount in (resource.scalars or {}).items():
        vector[dims.index(name)] = amount
    return vector


def from_vector(vector: Floats, dims: Dimensions, present: Sequence[int] | None = None) -> Resource:
    """The resource of an ``[R]`` vector; ``present``: indices of the scalars it has (default: those that are not 0)."""
    if present is None:
        present = [int(index) for index in np.flatnonzero(vector[PODS_INDEX:]) + PODS_INDEX]
    scalars = {dims.names[index]: float(vector[index]) for index in present} or None
    return Resource(float(vector[CPU_INDEX]), float(vector[MEMORY_INDEX]), scalars)


def request_items(resource: Amounts, dims: Dimensions) -> tuple[RequestItem, ...]:
    """What counts in ``less_equal``: cpu and memory always, and every scalar the request has, even of 0."""
    dims.see(resource)
    scalars = sorted((dims.index(name), amount) for name, amount in (resource.scalars or {}).items())
    return ((CPU_INDEX, resource.milli_cpu), (MEMORY_INDEX, resource.memory), *scalars)


def fits(items: Sequence[RequestItem], columns: Floats, out: Mask | None = None, scratch: Floats | None = None) -> Mask:
    """``less_equal(column, ZERO)`` of one request on every node: ``[N]`` bool.

    ``out`` ([N] bool) and ``scratch`` ([N] float64) save the allocations. A dimension beyond the rows of ``columns`` is
    0 on every node.
    """
    nodes: int = columns.shape[-1]
    result: Mask = np.empty(nodes, dtype=np.bool_) if out is None else out
    rest: Floats = np.empty(nodes) if scratch is None else scratch
    holds: Mask = np.empty(nodes, dtype=np.bool_)
    result.fill(True)
    for index, amount in items:
        if index >= columns.shape[0]:
            if not amount < MIN_RESOURCE:
                result.fill(False)
            continue
        np.subtract(amount, columns[index], out=rest)
        np.less(rest, MIN_RESOURCE, out=holds)
        np.logical_and(result, holds, out=result)
    return result


def less_equal(requests: Floats, columns: Floats) -> Mask:
    """Tolerant ``requests <= columns`` per dimension: ``[R]`` or ``[..., R, 1]`` against ``[..., R, N]``."""
    left = requests[:, None] if requests.ndim == 1 else requests
    return (left - columns) < MIN_RESOURCE


def insufficient(requests: Floats, columns: Floats) -> Mask:
    """Where a request does not fit: ``[R]`` or ``[..., R, 1]`` against ``[..., R, N]`` gives ``[..., R, N]``."""
    return ~less_equal(requests, columns)


def exceeds(requests: Floats, columns: Floats) -> Mask:
    """Exact ``requests > columns`` where something is requested (``less_equal_with_dimension_and_resources_name``)."""
    left = requests[:, None] if requests.ndim == 1 else requests
    return (left > columns) & (left > 0)


def is_empty(columns: Floats) -> Mask:
    """``Resource.is_empty`` over ``[..., R, N]``: every dimension but pods below 0.1; ``[..., N]``."""
    below = columns < MIN_RESOURCE
    below[..., PODS_INDEX, :] = True
    return np.asarray(below.all(axis=-2), dtype=np.bool_)
