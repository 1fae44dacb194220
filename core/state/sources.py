# SPDX-License-Identifier: Apache-2.0
"""The sources of derived columns: parts of the view, and the form in which a builder sees them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from pumice.core.resources import Resource
from pumice.core.state.derived import DerivedColumns, Source, derived

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from pumice.core.objects.metadata import Object
    from pumice.core.objects.node import NodeSpec
    from pumice.core.state.dimensions import Dimensions, FloatArray

ROWS, AMOUNTS, SPECS = "rows", "amounts", "specs"  # each changes whenever the one before it does
LIMITS, NAMES = "limits", "names"


@dataclass(frozen=True, slots=True)
class NodeSpecs:
    """The nodes in name order, and all their facts except heartbeats."""

    names: list[str]
    specs: list[NodeSpec]
    row: dict[str, int]
    derived: DerivedColumns

    @property
    def count(self) -> int:
        """Return how many nodes there are."""
        return len(self.names)


@dataclass(frozen=True, slots=True)
class Allocatable:
    """The allocatable of the nodes: `amounts` float64 [dimension, node], `max_pods` int64 [node], `each` as a Resource.

    `dimensions`: a name keeps its place while there is the view.
    """

    amounts: FloatArray
    max_pods: npt.NDArray[np.int64]
    each: Sequence[Resource]
    dimensions: Dimensions


class LimitedQueue(Protocol):
    """The part of a queue's spec that limits it; its status is not a source of columns."""

    @property
    def name(self) -> str:
        """Return its name."""
        ...

    @property
    def weight(self) -> int:
        """Return its weight."""
        ...

    @property
    def parent(self) -> str:
        """Return its parent's name, "" for the root."""
        ...

    @property
    def capability(self) -> Resource | None:
        """Return the most that the queue may have."""
        ...

    @property
    def deserved(self) -> Resource | None:
        """Return the amount that others cannot reclaim from the queue."""
        ...

    @property
    def guarantee(self) -> Resource | None:
        """Return the amount that is held free for the queue."""
        ...


_LIMITS: Final = tuple(name for name, part in vars(LimitedQueue).items() if isinstance(part, property))


def limits_of(queue: LimitedQueue) -> tuple[object, ...]:
    """Return all limits of a queue, for comparisons."""
    return tuple([getattr(queue, name) for name in _LIMITS])


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The queues in name order, the cluster's total, and the resources, with all that these name."""

    queues: Sequence[LimitedQueue]
    total: Resource
    dimensions: Dimensions
    derived: DerivedColumns


@dataclass(frozen=True, slots=True)
class PlacedObjects:
    """Objects of one kind, by name, and the nodes."""

    objects: Mapping[str, Object]
    nodes: NodeSpecs


def _node_specs(columns: DerivedColumns) -> NodeSpecs:
    nodes = columns.material.nodes
    return NodeSpecs(nodes.names, nodes.specs, nodes.row, columns)


def _allocatable(columns: DerivedColumns) -> Allocatable:
    material = columns.material
    nodes = material.nodes
    return Allocatable(nodes.allocatable, nodes.max_pods, [s.allocatable for s in nodes.specs], material.dimensions)


def _queue_limits(columns: DerivedColumns) -> QueueLimits:
    material = columns.material
    return QueueLimits(material.queues, total(columns), material.dimensions, columns)


NOTHING: Final[Source[None]] = Source(frozenset(), lambda _: None)
"""A column of its arguments alone."""
ALLOCATABLE: Final = Source(frozenset({ROWS, AMOUNTS}), _allocatable)
NODES: Final = Source(frozenset({ROWS, AMOUNTS, SPECS}), _node_specs)
QUEUE_NAMES: Final = Source(frozenset({LIMITS}), lambda columns: [queue.name for queue in columns.material.queues])
QUEUE_LIMITS: Final = Source(frozenset({ROWS, AMOUNTS, LIMITS, NAMES}), _queue_limits)


@lru_cache(maxsize=64)
def objects_and_nodes(kind: str) -> Source[PlacedObjects]:
    """Return objects of a kind that only some plugin reads, and the nodes; the part is called as the kind."""

    def read(columns: DerivedColumns) -> PlacedObjects:
        return PlacedObjects(columns.material.objects.get(kind, {}), _node_specs(columns))

    return Source(frozenset({ROWS, AMOUNTS, SPECS, kind}), read)


@derived(ALLOCATABLE)
def total(nodes: Allocatable) -> Resource:
    """Return the sum of the nodes' allocatable in name order."""
    # accumulate adds node after node, as Go does; numpy's sum adds in pairs and may differ in the last bits.
    sums = [float(np.add.accumulate(line)[-1]) if len(line) else 0.0 for line in nodes.amounts]
    # A scalar of 0 is named all the same: Volcano's comparisons tell it from an absent one.
    named = set[str]().union(*(resource.scalars or () for resource in nodes.each))
    scalars = {name: sums[nodes.dimensions.index(name)] for name in sorted(named)}
    return Resource(sums[0], sums[1], scalars or None)
