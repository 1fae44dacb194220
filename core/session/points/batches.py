"""Many tasks on many nodes as columns: a question about all of them costs one pass instead of one call a task."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.session.residents import Residents

BoolArray = npt.NDArray[np.bool_]
RowArray = npt.NDArray[np.intp]
FloatArray = npt.NDArray[np.float64]


class TaskBatch:
    """Tasks on several nodes: node after node, on each in namespace/name order.

    `rows` [M]: task rows; `node` [M]: 0..count-1, which node, ascending; `job` [M]: job rows, -1 for one that
    is not in the session.
    """

    __slots__ = ("_ranks", "count", "facts", "job", "node", "rows")

    def __init__(self, facts: Residents, rows: RowArray, node: RowArray, count: int) -> None:
        self.facts = facts
        self.rows = rows
        self.node = node
        self.count = count
        self.job: RowArray = facts.job[rows]
        self._ranks: tuple[RowArray, RowArray] | None = None

    def only(self, mask: BoolArray | RowArray) -> TaskBatch:
        """The tasks of the mask, or of these indices in their order."""
        return TaskBatch(self.facts, self.rows[mask], self.node[mask], self.count)

    def chosen(self, tasks: Sequence[Task], mask: BoolArray) -> list[Task]:
        """Those of these tasks, which are the batch's own, for which the mask holds."""
        return [task for task, holds in zip(tasks, mask.tolist(), strict=True) if holds]

    def bounds(self) -> list[int]:
        """Where the tasks of each node begin, and where the last ones end."""
        found: list[int] = np.searchsorted(self.node, np.arange(self.count + 1)).tolist()
        return found

    def tasks(self) -> list[Task]:
        """The tasks themselves."""
        return self.facts.tasks(self.rows)

    def by_node(self) -> list[list[Task]]:
        """The tasks themselves, node by node."""
        tasks, bounds = self.tasks(), self.bounds()
        return [tasks[first:last] for first, last in pairwise(bounds)]

    def per_node(self, mask: BoolArray) -> RowArray:
        """How many tasks of the mask each node has, [count]."""
        return np.bincount(self.node[mask], minlength=self.count)

    def ranks(self) -> tuple[RowArray, RowArray]:
        """(order, rank): tasks sorted by node and job, otherwise as they are; and each sorted task's place among those
        of its job on its node.
        """
        if self._ranks is None:
            key = self.node * (int(self.job.max(initial=0)) + 2) + self.job  # those without a job make one, -1
            order = np.argsort(key, kind="stable")
            places = np.arange(len(key))
            starts = np.empty(len(key), dtype=np.bool_)
            starts[:1] = True
            np.not_equal(key[order][1:], key[order][:-1], out=starts[1:])
            self._ranks = order, places - np.maximum.accumulate(np.where(starts, places, 0))
        return self._ranks
