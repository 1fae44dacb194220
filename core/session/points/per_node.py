"""Filters and scorers that look at one node at a time: for those who do not want to think in columns.

A point takes a plain function of a task and a node, too: it makes one of these of it. They cost a Python call for every
node, about a microsecond each where columns take nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING

from pumice.core.session.points.nodes import Reads, Volatility
from pumice.core.session.points.ready import RowCheck, RowScore
from pumice.core.session.reasons import Code, Reason

if TYPE_CHECKING:
    from pumice.core.objects.node import NodeSpec
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import FloatArray
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
        """The node's name."""
        return self.spec.name

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.spec.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The node's annotations."""
        return self.spec.annotations

    @property
    def tasks(self) -> list[Task]:
        """The tasks on it, those placed in this session included, by "namespace/name"."""
        return self._session.nodes.tasks_on(self.row)

    def allocatable(self, resource: str) -> float:
        """Return what the node can allocate of a resource; 0 for one that it does not have."""
        return self._amount(self._session.nodes.allocatable, resource)

    def used(self, resource: str) -> float:
        """Return what is taken of a resource."""
        return self._amount(self._session.nodes.used, resource)

    def idle(self, resource: str) -> float:
        """Return what is left of a resource."""
        return self._amount(self._session.nodes.idle, resource)

    def _amount(self, columns: FloatArray, resource: str) -> float:
        names = self._session.dims.names[: len(columns)]
        return float(columns[names.index(resource), self.row]) if resource in names else 0.0


NodeTest = Callable[["Task", NodeLook], "str | Reason | None"]
"""None: the node will do. A text or Reason: it will not; a text is plain Unschedulable, which evictions may cure."""
NodeRate = Callable[["Task", NodeLook], float]
Kind = Callable[["Task"], Hashable]


def _one_of_a_kind(task: Task) -> Hashable:
    return task.uid


class PerNode:
    """The common part of a per-node filter and a per-node scorer.

    `volatility`: when an answer grows stale; GLOBAL is always right, ROW when only that node is looked at, STATIC when
    only its spec is. `kind`: what of a task the answer depends on beside its pod template; tasks of one template and
    one kind share their answers. The default shares nothing.
    """

    def __init__(self, name: str, *, volatility: Volatility = Volatility.GLOBAL, kind: Kind = _one_of_a_kind) -> None:
        self.name = name
        self.volatility = volatility
        self.reads = Reads(kind=kind)


class PerNodeCheck(RowCheck):
    """A per-node filter at work for one task."""

    def __init__(self, name: str, test: NodeTest, volatility: Volatility, session: Session, task: Task) -> None:
        super().__init__(session.nodes.count)
        self.volatility = volatility
        self._name, self._test, self._session, self._task = name, test, session, task

    def reject_one(self, row: int, /) -> int:
        """Reason number of one node, 0 when it will do."""
        answer = self._test(self._task, NodeLook(self._session, row))
        if answer is None:
            return 0
        if isinstance(answer, str):
            answer = Reason(self._name, Code.UNSCHEDULABLE, answer)
        elif not isinstance(answer, Reason):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"expected a text, a Reason or None, was {answer!r}")
        return self._session.reasons.intern(answer)


class PerNodeFilter(PerNode):
    """`test(task, node)` as a NodeFilter."""

    def __init__(
        self, name: str, test: NodeTest, *, volatility: Volatility = Volatility.GLOBAL, kind: Kind = _one_of_a_kind
    ) -> None:
        super().__init__(name, volatility=volatility, kind=kind)
        self._test = test

    def prepare(self, session: Session, task: Task) -> PerNodeCheck:
        """For one task."""
        return PerNodeCheck(self.name, self._test, self.volatility, session, task)


class PerNodeScore(RowScore):
    """A per-node scorer at work for one task."""

    def __init__(self, rate: NodeRate, weight: float, volatility: Volatility, session: Session, task: Task) -> None:
        super().__init__(session.nodes.count)
        self.volatility = volatility
        self._rate, self._weight, self._session, self._task = rate, weight, session, task

    def score_one(self, row: int, /) -> float:
        """Weighted score of one node."""
        return float(self._rate(self._task, NodeLook(self._session, row))) * self._weight


class PerNodeScorer(PerNode):
    """`rate(task, node)` times `weight` as a NodeScorer. Volcano's own scores are 0 to 100 before their weights."""

    def __init__(
        self,
        name: str,
        rate: NodeRate,
        *,
        weight: float = 1.0,
        volatility: Volatility = Volatility.GLOBAL,
        kind: Kind = _one_of_a_kind,
    ) -> None:
        super().__init__(name, volatility=volatility, kind=kind)
        self._rate, self._weight = rate, weight

    def prepare(self, session: Session, task: Task) -> PerNodeScore:
        """For one task."""
        return PerNodeScore(self._rate, self._weight, self.volatility, session, task)
