# SPDX-License-Identifier: Apache-2.0
"""Filters and scorers that look at one node at a time, for authors who do not write column rules.

A point takes a plain function of a task and a node, too: it makes one of these of it. They cost a Python call for every
node, about a microsecond each where columns take nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pumice.core.session.points.nodes import Reads, Volatility
from pumice.core.session.points.rules import ByNode, ColumnRule
from pumice.core.session.reasons import Code, Reason

if TYPE_CHECKING:
    from pumice.core.objects.node import NodeSpec
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.points.rules import Check, Score
    from pumice.core.session.session import Session


class NodeLook:
    """One node as the session sees it now. Amounts are in milli-cores, bytes, and thousandths of anything else."""

    __slots__ = ("_session", "row", "spec")

    def __init__(self, session: Session, row: int) -> None:
        self._session = session
        self.row = row
        self.spec: NodeSpec = session.nodes.specs[row]

    @property
    def name(self) -> str:
        """Return the node's name."""
        return self.spec.name

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the node's labels."""
        return self.spec.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """Return the node's annotations."""
        return self.spec.annotations

    @property
    def tasks(self) -> list[Task]:
        """Return the tasks on the node, those placed in this session included, by "namespace/name"."""
        return self._session.nodes.tasks_on(self.row)

    def allocatable(self, resource: str) -> float:
        """Return the node's allocatable of a resource; 0 without it."""
        return self._amount(self._session.nodes.allocatable, resource)

    def used(self, resource: str) -> float:
        """Return the used amount of a resource."""
        return self._amount(self._session.nodes.used, resource)

    def idle(self, resource: str) -> float:
        """Return the idle amount of a resource."""
        return self._amount(self._session.nodes.idle, resource)

    def _amount(self, columns: FloatArray, resource: str) -> float:
        names = self._session.dims.names[: len(columns)]
        # Dimensions may have come since the columns were copied; no node of this session has any of them.
        return float(columns[names.index(resource), self.row]) if resource in names else 0.0


NodeTest = Callable[["Task", NodeLook], "str | Reason | None"]
"""None: the node will do. A text or Reason: it will not; a text is plain Unschedulable, which evictions may cure."""
NodeRate = Callable[["Task", NodeLook], float]
Kind = Callable[["Task"], Hashable]


def _one_of_a_kind(task: Task) -> Hashable:
    # A uid equals no other, so the answers about one task are never given to another.
    return task.uid


class PerNodeFilter:
    """`test(task, node)` as a NodeFilter.

    `volatility`: when an answer grows stale; GLOBAL is always right, ROW when only that node is looked at, STATIC when
    only its spec is. `kind`: what of a task the answer depends on beside its pod template; tasks of one template and
    one kind share their answers. The default shares nothing. `concerns`: the tasks that are asked about at all.
    """

    def __init__(
        self,
        name: str,
        test: NodeTest,
        *,
        volatility: Volatility = Volatility.GLOBAL,
        kind: Kind = _one_of_a_kind,
        concerns: Callable[[Task], bool] | None = None,
    ) -> None:
        self.name, self.volatility, self.reads = name, volatility, Reads(kind=kind)
        self._test, self._concerns = test, concerns

    def prepare(self, session: Session, task: Task) -> Check | None:
        """Return the check for one task."""
        if self._concerns is not None and not self._concerns(task):
            return None

        def reject(row: int) -> int:
            answer = self._test(task, NodeLook(session, row))
            if answer is None:
                return 0
            if isinstance(answer, str):
                answer = Reason(self.name, Code.UNSCHEDULABLE, answer)
            # An error for the plugin's author: a wrong type would else be seen as a wrong decision only.
            elif not isinstance(answer, Reason):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"expected a text, a Reason or None, was {answer!r}")
            return session.reasons.intern(answer)

        return ColumnRule(ByNode(session.nodes.count, reject, np.int32), self.volatility)


class PerNodeScorer:
    """`rate(task, node)` times `weight` as a NodeScorer. Volcano's own scores are 0 to 100 before their weights.
    `finish`: NormalizeScore, where scores depend on all candidates together.
    """

    def __init__(
        self,
        name: str,
        rate: NodeRate,
        *,
        weight: float = 1.0,
        volatility: Volatility = Volatility.GLOBAL,
        kind: Kind = _one_of_a_kind,
        concerns: Callable[[Task], bool] | None = None,
        finish: Callable[[FloatArray], FloatArray] | None = None,
    ) -> None:
        self.name, self.volatility, self.reads = name, volatility, Reads(kind=kind)
        self._rate, self._weight, self._concerns, self._finish = rate, weight, concerns, finish

    def prepare(self, session: Session, task: Task) -> Score | None:
        """Return the scores for one task."""
        if self._concerns is not None and not self._concerns(task):
            return None

        def score(row: int) -> float:
            return float(self._rate(task, NodeLook(session, row))) * self._weight

        return ColumnRule(ByNode(session.nodes.count, score, np.float64), self.volatility, finish=self._finish)
