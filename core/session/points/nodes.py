# SPDX-License-Identifier: Apache-2.0
"""Filters and scorers of nodes, and batches of tasks: filters answer with reason codes, scorers with numbers.

A filter or scorer is prepared once for a task (Kubernetes' PreFilter / PreScore) and then asked about rows: all of
them, a few, or one. `volatility` says what makes an earlier answer stale, so that consecutive tasks of one template
recompute only what changed. A plugin states its rule once, in one of the two forms of rules.py. How filters are merged
is in core/session/search/filters.py, how scores are in core/session/search/node_search.py.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.points.rules import ColumnRule
    from pumice.core.session.residents import Residents
    from pumice.core.session.session import Session

# --- Batches of tasks

BoolArray = npt.NDArray[np.bool_]
RowArray = npt.NDArray[np.intp]


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
        """Return the tasks of the mask, or of these indices in their order."""
        return TaskBatch(self.facts, self.rows[mask], self.node[mask], self.count)

    def chosen(self, tasks: Sequence[Task], mask: BoolArray) -> list[Task]:
        """Return those of the batch's own tasks for which the mask holds."""
        return [task for task, holds in zip(tasks, mask.tolist(), strict=True) if holds]

    def bounds(self) -> list[int]:
        """Return where the tasks of each node begin, and where the last ones end."""
        found: list[int] = np.searchsorted(self.node, np.arange(self.count + 1)).tolist()
        return found

    def tasks(self) -> list[Task]:
        """Return the tasks themselves."""
        return self.facts.tasks(self.rows)

    def by_node(self) -> list[list[Task]]:
        """Return the tasks themselves, node by node."""
        tasks, bounds = self.tasks(), self.bounds()
        return [tasks[first:last] for first, last in pairwise(bounds)]

    def per_node(self, mask: BoolArray) -> RowArray:
        """Return how many tasks of the mask each node has, [count]."""
        return np.bincount(self.node[mask], minlength=self.count)

    def ranks(self) -> tuple[RowArray, RowArray]:
        """Return (order, rank): tasks sorted by node and job, otherwise in their order; and each sorted task's place
        among those of its job on its node.
        """
        if self._ranks is None:
            key = self.node * (int(self.job.max(initial=0)) + 2) + self.job  # those without a job make one, -1
            order = np.argsort(key, kind="stable")
            places = np.arange(len(key))
            starts = np.empty(len(key), dtype=np.bool_)
            starts[:1] = True
            np.not_equal(key[order][1:], key[order][:-1], out=starts[1:])
            # A running maximum of where groups start: no loop over groups.
            self._ranks = order, places - np.maximum.accumulate(np.where(starts, places, 0))
        return self._ranks


FloatArray = npt.NDArray[np.float64]
Rows = slice | npt.NDArray[np.intp]  # slice(None) for all nodes, or row numbers


class Volatility(Enum):
    """The time when an answer about a row must be asked again within a session."""

    STATIC = "static"  # never: it follows from the node's spec and the task alone
    ROW = "row"  # when something was placed on or taken off that row
    GLOBAL = "global"  # when anything was placed or taken off anywhere (affinity, spread)
    MOMENT = "moment"  # at every choice; a filter is then asked about no node that something else refuses


class Reads(NamedTuple):
    """The facts of a task, besides its pod template, that a filter or scorer reads. Tasks with equal facts share their
    answers.

    `labels`: the task's namespace and labels; `kind`: anything else, as something to compare; `of_labels`: `kind` reads
    nothing but the namespace and labels. `concerns`: the templates about which there is anything to say at all, None
    for every one; a plain template is never among them. `anew`: those of whose tasks none shares anything: PreFilter
    itself reads what was placed, or the pod's name. `needs_pre_filter`: a filter that fails where PreFilter has left it
    no state, whatever the template is.
    """

    labels: bool = False
    kind: Callable[[Task], Hashable] | None = None
    concerns: Callable[[PodTemplate], bool] | None = None
    anew: Callable[[PodTemplate], bool] | None = None
    needs_pre_filter: bool = False
    of_labels: bool = False


TEMPLATE_ONLY = Reads()


def labels_of(task: Task) -> Hashable:
    """Return a task's namespace and labels as a comparable value."""
    return task.namespace, tuple(sorted(task.labels.items()))


class ReadsLabelsInPlay:
    """Labels are read only where a pod has affinity: most clusters have none."""

    in_play = False

    @property
    def reads(self) -> Reads:
        """Return the inputs of the answers. Not an attribute: it would refer to itself, and so wait for the garbage
        collector.
        """
        return Reads(kind=self._kind, needs_pre_filter=True, of_labels=True)

    def _kind(self, task: Task) -> Hashable:
        return labels_of(task) if self.in_play else None

    def is_concerned(self, session: Session) -> bool:
        """Return whether a pod on a node has terms, so that there is something to say about every task."""
        raise NotImplementedError


A = TypeVar("A", bound="np.int32 | np.float64")


class NodeRules(Protocol[A]):
    """A filter or scorer: it gives the rule for each task."""

    @property
    def name(self) -> str: ...
    @property
    def reads(self) -> Reads: ...
    def prepare(self, session: Session, task: Task) -> ColumnRule[A] | None:
        """Run PreFilter or PreScore.

        None: there is nothing to say about this task (Skip), or the weight is 0. A filter raises FitFailure when no
        node can do.
        """
        ...


NodeFilter = NodeRules[np.int32]
"""Merge rule: a node passes when every filter passes. The first plugin that refuses it has said all; within a plugin
filters run in order, and a plain Unschedulable lets the next ones add their reasons, anything else ends the node's
list.
"""
NodeScorer = NodeRules[np.float64]
"""Merge rule: weighted sum, in the order of registration."""
