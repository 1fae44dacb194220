# SPDX-License-Identifier: Apache-2.0
"""Nodes of the view: specs, and the idle, used and releasing amounts of each, as columns.

Accounting follows Volcano's `NodeInfo.AddTask` / `RemoveTask` (reference section 5.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pumice.core.life.task import TaskStatus
from pumice.core.state.dimensions import FloatArray, floats, grown, heightened, integers
from pumice.core.state.sources import AMOUNTS, ROWS, SPECS

if TYPE_CHECKING:
    from pumice.core.objects.node import NodeSpec
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.resources import Resource
    from pumice.core.state.dimensions import Dimensions
    from pumice.core.state.kept_columns import Arrays

RELEASING = TaskStatus.RELEASING


class NodeListing(NamedTuple):
    """The nodes: names by row, rows by name, and rows in order of arrival (Volcano's NodeList). It does not change."""

    names: list[str]
    row: dict[str, int]
    arrival: npt.NDArray[np.intp]


class NodeTable:
    """Columns over node rows, float64 [dimension, node]: cpu in milli-cores, memory in bytes, pods a count, scalars in
    milli-units.

    `pod_count` int32 and `nonzero` float64 [cpu milli, memory bytes; node] are kube-scheduler's count and non-zero
    requests of the pods on it.
    `idle_at` and the like: the columns by dimension, number by number.
    Rows are in name order after :meth:`compact`; `arrival` numbers the nodes in the order in which they came.
    `versions`: of what columns are derived from.
    """

    VECTORS = ("allocatable", "idle", "used", "releasing")
    PLAIN = ("nonzero", "pod_count", "max_pods", "arrival")

    def __init__(self, dimensions: Dimensions) -> None:
        self.dimensions = dimensions
        self.changed: set[int] = set()  # see core/state/kept_columns.py
        self.row: dict[str, int] = {}
        self.specs: list[NodeSpec] = []
        self.sorted = True
        self.versions = {ROWS: 0, AMOUNTS: 0, SPECS: 0}
        self.arrivals = 0
        self._listing: NodeListing | None = None
        self.allocatable: FloatArray = np.zeros((4, 16))
        self.idle: FloatArray = np.zeros((4, 16))
        self.used: FloatArray = np.zeros((4, 16))
        self.releasing: FloatArray = np.zeros((4, 16))
        self.nonzero: FloatArray = np.zeros((2, 16))
        self.pod_count: npt.NDArray[np.int32] = np.zeros(16, dtype=np.int32)
        self.max_pods: npt.NDArray[np.int64] = np.zeros(16, dtype=np.int64)
        self.arrival: npt.NDArray[np.int64] = np.zeros(16, dtype=np.int64)
        self._by_number()

    def _by_number(self) -> None:
        self._current: tuple[tuple[int, int], Arrays] | None = None  # slices of other arrays
        self.idle_at = [floats(line) for line in self.idle]
        self.used_at = [floats(line) for line in self.used]
        self.releasing_at = [floats(line) for line in self.releasing]
        self.nonzero_at = [floats(line) for line in self.nonzero]
        self.pod_count_at = integers(self.pod_count)

    @property
    def rows_version(self) -> int:
        """Rises whenever nodes come, go or change their rows."""
        return self.versions[ROWS]

    @property
    def count(self) -> int:
        """Return how many nodes there are."""
        return len(self.specs)

    def fit_dimensions(self) -> None:
        """Make room for every known dimension."""
        if len(self.dimensions) > self.idle.shape[0]:
            for name in self.VECTORS:
                setattr(self, name, heightened(getattr(self, name), len(self.dimensions)))
            self._by_number()

    def add(self, spec: NodeSpec) -> int:
        """Add a new empty node at the end."""
        row = self.count
        self.specs.append(spec)
        self.row[spec.name] = row
        if row >= self.idle.shape[1]:
            for name in (*self.VECTORS, *self.PLAIN):
                setattr(self, name, grown(getattr(self, name), row + 1))
            self._by_number()
        # Rows stay sorted while nodes come in name order: the next snapshot then moves nothing.
        self.sorted = row == 0 or (self.sorted and self.specs[row - 1].name < spec.name)
        self.arrival[row] = self.arrivals
        self.arrivals += 1
        self._rows_changed()
        self.used[:, row] = self.releasing[:, row] = 0.0
        self.nonzero[:, row] = self.pod_count[row] = 0
        self._set_allocatable(row, spec)
        return row

    def update(self, row: int, spec: NodeSpec) -> None:
        """Update a changed node; its tasks stay."""
        self.changed.add(row)
        before, self.specs[row] = self.specs[row], spec
        self.versions[SPECS] += 1
        # Labels and taints leave the amounts alone, so columns that are derived from amounts stay.
        if before.allocatable != spec.allocatable or before.max_pods != spec.max_pods:
            self._set_allocatable(row, spec)

    def renew(self, row: int, spec: NodeSpec) -> None:
        """Renew a node after a heartbeat: no column changes."""
        self.changed.add(row)
        self.specs[row] = spec

    def remove(self, name: str) -> None:
        """Drop a node; the last row moves into its place."""
        row, last = self.row.pop(name), self.count - 1
        # Rows stay dense: the last one fills the gap, and the next snapshot sorts them.
        if row != last:
            for column in (*self.VECTORS, *self.PLAIN):
                array = getattr(self, column)
                array[..., row] = array[..., last]
            self.specs[row] = self.specs[last]
            self.row[self.specs[row].name] = row
            self.sorted = False
        self.specs.pop()
        self._rows_changed()

    def _rows_changed(self) -> None:
        self._listing = None
        self.versions[ROWS] += 1

    def _set_allocatable(self, row: int, spec: NodeSpec) -> None:
        self.changed.add(row)
        self._write(self.allocatable, row, spec.allocatable)
        self.idle[:, row] = self.allocatable[:, row] - self.used[:, row]
        if spec.allocatable.scalars is None:  # Go's nil map: subtracting a scalar from it does nothing
            self.idle[2:, row] = 0.0
        self.max_pods[row] = spec.max_pods
        self.versions[AMOUNTS] += 1

    def _write(self, column: FloatArray, row: int, resource: Resource) -> None:
        items = self.dimensions.items(resource)
        if len(self.dimensions) > column.shape[0]:
            self.fit_dimensions()
            column = self.allocatable
        column[:, row] = 0.0
        for dimension, value in items:
            column[dimension, row] = value

    def place(self, row: int, template: PodTemplate, status: int, sign: int) -> None:
        """Add (sign 1) or remove (-1) a task of that status."""
        # kube-scheduler's NodeInfo counts terminating pods, too.
        self.changed.add(row)
        self.pod_count_at[row] += sign
        self.nonzero_at[0][row] += sign * template.nonzero_cpu
        self.nonzero_at[1][row] += sign * template.nonzero_memory
        # Go's nil map, as in `_set_allocatable`: subtracting a scalar from it does nothing.
        keeps_scalars = self.specs[row].allocatable.scalars is not None
        releases = status == RELEASING
        idle, used, releasing = self.idle_at, self.used_at, self.releasing_at
        for dimension, value in template.items:
            amount = sign * value
            used[dimension][row] += amount
            if dimension < 2 or keeps_scalars:
                idle[dimension][row] -= amount
            if releases:
                releasing[dimension][row] += amount

    def restate(self, row: int, template: PodTemplate, before: int, status: int) -> None:
        """Count a task that changed its status on the node: only the releasing amounts can differ."""
        sign = (status == RELEASING) - (before == RELEASING)
        if sign:
            self.changed.add(row)
            for dimension, value in template.items:
                self.releasing_at[dimension][row] += sign * value

    def compact(self) -> npt.NDArray[np.int32] | None:
        """Bring the rows into name order, and return old row -> new row (int32), or None when they were in order."""
        if self.sorted:
            return None
        order = sorted(range(self.count), key=lambda r: self.specs[r].name)
        permutation = np.array(order, dtype=np.intp)
        for column in (*self.VECTORS, *self.PLAIN):
            array = getattr(self, column)
            array[..., : self.count] = array[..., permutation]
        self.specs = [self.specs[r] for r in order]
        self.row = {spec.name: r for r, spec in enumerate(self.specs)}
        moved = np.empty(self.count, dtype=np.int32)
        # The inverse of the permutation: old row to new row.
        moved[permutation] = np.arange(self.count, dtype=np.int32)
        self.sorted = True
        self._rows_changed()
        return moved

    def listing(self) -> NodeListing:
        """Return the listing, which all snapshots between two changes of the list of nodes share."""
        if self._listing is None:
            order = np.argsort(self.arrival[: self.count], kind="stable")
            # All snapshots until the next change share it.
            order.flags.writeable = False
            self._listing = NodeListing([spec.name for spec in self.specs], dict(self.row), order)
        return self._listing

    def shape(self) -> tuple[int, int]:
        """Return how many dimensions and rows a session has."""
        return len(self.dimensions), self.count

    def current(self) -> tuple[Arrays, list[NodeSpec]]:
        """Return the columns that a session has, not copied, and the specs; rows must be in name order."""
        height, count = shape = self.shape()
        if self._current is None or self._current[0] != shape:
            now: Arrays = {name: getattr(self, name)[:height, :count] for name in self.VECTORS}
            now |= {"max_pods": self.max_pods[:count], "pod_count": self.pod_count[:count]}
            self._current = shape, now | {"nonzero": self.nonzero[:, :count]}
        return self._current[1], self.specs

    def derived_like(self, arrays: Arrays) -> Arrays:
        """Return room for what a session has beside them."""
        room: Arrays = {name: np.empty_like(arrays["idle"]) for name in ("future", "pipelined", "requested")}
        return room | {"releases": np.zeros(len(arrays["pod_count"]), dtype=np.bool_)}

    def derive(self, arrays: Arrays, at: slice | npt.NDArray[np.intp]) -> None:
        """Fill in the room to come (nothing is promised yet), and kube-scheduler's sums, which are Volcano's."""
        releasing = arrays["releasing"][:, at]
        arrays["future"][:, at] = arrays["idle"][:, at] + releasing
        arrays["releases"][at] = np.logical_or.reduce(releasing)
        arrays["pipelined"][:, at] = 0.0
        arrays["requested"][:, at] = arrays["used"][:, at]
