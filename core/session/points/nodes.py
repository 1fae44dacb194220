"""The extension points that look at nodes, vectorised: filters answer with reason codes, scorers with arrays.

A filter or scorer is prepared once for a task (Kubernetes' PreFilter / PreScore) and then asked about rows: all of
them, a few, or one. `volatility` says what makes an earlier answer stale, so that consecutive tasks of one template
recompute only what changed. How filters are merged is in core/session/search/filters.py, how scores are in
core/session/search/scoring.py.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from core.session.points.point import Point
from core.session.points.votes import Notified

if TYPE_CHECKING:
    from core.objects.pod import Task
    from core.objects.pod_template import PodTemplate
    from core.session.points.listed import Listed
    from core.session.reasons import IntArray
    from core.session.session import Session
    from core.session.subjobs import SubJob
    from core.state.hypernodes import Domain
    from core.state.jobs import Job

FloatArray = npt.NDArray[np.float64]
S = TypeVar("S")
Rows = slice | npt.NDArray[np.intp]  # slice(None) for all nodes, or row numbers


class Volatility(Enum):
    """When an answer about a row must be asked again within a session."""

    STATIC = "static"  # never: it follows from the node's spec and the task alone
    ROW = "row"  # when something was placed on or taken off that row
    GLOBAL = "global"  # when anything was placed or taken off anywhere (affinity, spread)
    MOMENT = "moment"  # at every choice: it depends on the very task (scores only)


@dataclass(frozen=True, slots=True)
class Reads:
    """What a filter or scorer reads of a task beside its pod template. Tasks that share all of it share their answers.

    `labels`: the task's namespace and labels; `kind`: anything else, as something to compare. `concerns`: the templates
    about which there is anything to say at all, None for every one; a plain template is never among them. `anew`: those
    of whose tasks none shares anything: PreFilter itself reads what was placed, or the pod's name.
    """

    labels: bool = False
    kind: Callable[[Task], Hashable] | None = None
    concerns: Callable[[PodTemplate], bool] | None = None
    anew: Callable[[PodTemplate], bool] | None = None


TEMPLATE_ONLY = Reads()


def labels_of(task: Task) -> Hashable:
    """A task's namespace and labels, as something to compare."""
    return task.namespace, tuple(sorted(task.labels.items()))


class NodeCheck(Protocol):
    """A filter prepared for one task."""

    volatility: Volatility

    def reject(self, rows: Rows) -> IntArray:
        """Reason number per row (`Session.reasons`), 0 where the node passes. Shape [len(rows)], int32."""
        ...

    def reject_one(self, row: int) -> int:
        """Reason number of one row, 0 where it passes: what `reject` says of it."""
        ...


class NodeFilter(Protocol):
    """Merge rule: a node passes when every filter passes. The first plugin that refuses it has said all; within a
    plugin filters run in order, and a plain Unschedulable lets the next ones add their reasons, anything else ends the
    node's list.
    """

    @property
    def name(self) -> str: ...
    @property
    def reads(self) -> Reads: ...
    def prepare(self, session: Session, task: Task) -> NodeCheck | None:
        """PreFilter.

        None: the filter has nothing to say about this task (Skip). Raises FitFailure when no node can do.
        """
        ...


class NodeScore(Protocol):
    """A scorer prepared for one task. `normalised`: whether `finish` depends on the candidates as a set; `constant`:
    the finished value when it is the same for every node whatever the candidates are, else None.
    """

    volatility: Volatility
    normalised: bool
    constant: float | None

    def score(self, rows: Rows) -> FloatArray:
        """Raw score per row, shape [len(rows)]. Weighted already unless `normalised`."""
        ...

    def score_one(self, row: int) -> float:
        """Score of one row, bit for bit what `score` says of it."""
        ...

    def finish(self, raw: FloatArray) -> FloatArray:
        """NormalizeScore over the candidates' raw scores, times the weight. Only called when `normalised`."""
        ...


class NodeScorer(Protocol):
    """Merge rule: weighted sum, in the order of registration."""

    @property
    def name(self) -> str: ...
    @property
    def reads(self) -> Reads: ...
    def prepare(self, session: Session, task: Task) -> NodeScore | None:
        """PreScore. None: no contribution (weight 0, or Skip)."""
        ...


class DomainScores(Protocol):
    """Scores of domains ("HyperNode" names) for a group; `alone`: each as if it had no rival."""

    def __call__(self, sub_job: SubJob, names: list[str], *, alone: bool = False) -> dict[str, float]: ...


class HyperNodeOrder(Point[DomainScores]):
    """The plugins' scores of each domain, summed in tier order."""

    __slots__ = ()

    def __call__(self, sub_job: SubJob, names: list[str], *, alone: bool = False) -> dict[str, float]:
        """Total score by name."""
        totals = dict.fromkeys(names, 0.0)
        for score in self.rules:
            for name, value in score(sub_job, names, alone=alone).items():
                totals[name] += value
        return totals


class Gradient(Point[Callable[[S, "Domain", str], "list[list[Domain]] | None"]], Generic[S]):
    """(a job or a group, a domain, "allocate" or "evict") -> the domains to try inside it, nearest first, as the first
    plugin with an answer says; without one the domain itself.
    """

    __slots__ = ()

    def __call__(self, subject: S, domain: Domain, purpose: str = "allocate") -> list[list[Domain]]:
        """The domains."""
        for ask in self.rules:
            answer = ask(subject, domain, purpose)
            if answer is not None:
                return answer
        return [[domain]]


class NodePoints:
    """`pre_predicate` raises FitFailure when no node can take the task."""

    def __init__(self, listed: Listed) -> None:
        self.pre_predicate: Notified[Task] = Notified("PrePredicate", listed)
        self.predicate: Point[Sequence[NodeFilter]] = Point("Predicate", listed)
        self.node_order: Point[Sequence[NodeScorer]] = Point("NodeOrder", listed)
        self.batch_node_order: Point[Sequence[NodeScorer]] = Point("BatchNodeOrder", listed)
        self.hyper_node_order = HyperNodeOrder("HyperNodeOrder", listed)
        self.hyper_node_gradient_for_job: Gradient[Job] = Gradient("HyperNodeGradientForJob", listed)
        self.hyper_node_gradient_for_sub_job: Gradient[SubJob] = Gradient("HyperNodeGradientForSubJob", listed)
