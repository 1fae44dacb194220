"""The extension points that look at nodes and at domains of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from pumice.core.session.points.nodes import NodeFilter, NodeScorer
from pumice.core.session.points.per_node import NodeRate, NodeTest, PerNodeFilter, PerNodeScorer
from pumice.core.session.points.point import Point
from pumice.core.session.points.votes import Notified

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.listed import Listed
    from pumice.core.session.subjobs import SubJob
    from pumice.core.state.hypernodes import Domain
    from pumice.core.state.jobs import Job

S = TypeVar("S")


def lifted_filters(plugin: str, rule: NodeTest | Sequence[NodeFilter]) -> Sequence[NodeFilter]:
    """A plugin's filters: a plain function of a task and a node becomes one that shares no answers."""
    return [PerNodeFilter(plugin, rule)] if callable(rule) else rule


def lifted_scorers(plugin: str, rule: NodeRate | Sequence[NodeScorer]) -> Sequence[NodeScorer]:
    """A plugin's scorers, likewise."""
    return [PerNodeScorer(plugin, rule)] if callable(rule) else rule


class FilterPoint(Point[Sequence[NodeFilter]]):
    """Filters by plugin."""

    __slots__ = ()

    def add(self, plugin: str, rule: NodeTest | Sequence[NodeFilter]) -> None:
        """Register a plugin's filters, or a plain function of a task and a node."""
        super().add(plugin, lifted_filters(plugin, rule))


class ScorerPoint(Point[Sequence[NodeScorer]]):
    """Scorers by plugin."""

    __slots__ = ()

    def add(self, plugin: str, rule: NodeRate | Sequence[NodeScorer]) -> None:
        """Register a plugin's scorers, or a plain function of a task and a node."""
        super().add(plugin, lifted_scorers(plugin, rule))


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
        self.predicate = FilterPoint("Predicate", listed)
        self.node_order = ScorerPoint("NodeOrder", listed)
        self.batch_node_order = ScorerPoint("BatchNodeOrder", listed)
        self.hyper_node_order = HyperNodeOrder("HyperNodeOrder", listed)
        self.hyper_node_gradient_for_job: Gradient[Job] = Gradient("HyperNodeGradientForJob", listed)
        self.hyper_node_gradient_for_sub_job: Gradient[SubJob] = Gradient("HyperNodeGradientForSubJob", listed)
