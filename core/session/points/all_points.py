# SPDX-License-Identifier: Apache-2.0
"""All extension points of a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pumice.core.messages.decisions import BindContext
from pumice.core.session.points.nodes import NodeFilter, NodeScorer
from pumice.core.session.points.orders import OrderPoints
from pumice.core.session.points.per_node import NodeRate, NodeTest, PerNodeFilter, PerNodeScorer
from pumice.core.session.points.point import Point, listed_plugins
from pumice.core.session.points.victims import VictimPoints
from pumice.core.session.points.votes import AllAgree, FirstAnswer, Notified, VotePoints
from pumice.core.state.derived import itself

if TYPE_CHECKING:
    from pumice.config.schema import SchedulerConfig
    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.jobs import SubJob
    from pumice.core.session.points.point import Listed
    from pumice.core.session.points.victims import AsBatch
    from pumice.core.session.trail.trail import Trail
    from pumice.core.state.hypernodes import Domain
    from pumice.core.state.jobs import Job

# --- Handlers and bind contexts
# Source: Volcano `framework/event.go`, `framework.BindContextHandler`, `cache.BindContext`.


class Handler(Protocol):
    """An event handler: called with the task and its node's row after a placement or before its undoing; a returned
    text is an error.
    """

    def __call__(self, task: Task, node: int, /) -> str | None: ...


class Binding(Point[Callable[["Task"], "BindContext | None"]]):
    """Asks every plugin for its addition to the bind of a placed task; all are carried."""

    __slots__ = ()

    def __call__(self, task: Task) -> BindContext | None:
        """Return the plugins' additions as one, None without any."""
        said: list[BindContext] = []
        for ask in self.rules:
            context = ask(task)
            if context is not None:
                said.append(context)
        return merged(said) if said else None


class BindingPoints:
    """`bind_context`, and the event handlers: all are called, in order of registration.

    `takes_back`: whether each handler, told of an eviction and then that it was taken back, ends where it began.
    """

    def __init__(self, listed: Listed) -> None:
        self.bind_context = Binding("BindContext", listed)
        self.on_allocate: list[Handler] = []
        self.on_deallocate: list[Handler] = []
        self.takes_back = True

    def handle(
        self, allocate: Handler | None = None, deallocate: Handler | None = None, *, takes_back: bool = False
    ) -> None:
        """Register event handlers."""
        self.takes_back &= takes_back
        if allocate is not None:
            self.on_allocate.append(allocate)
        if deallocate is not None:
            self.on_deallocate.append(deallocate)


def merged(contexts: Sequence[BindContext]) -> BindContext | None:
    """Merge the plugins' additions: all are carried out in the given order; the first annotation of a name counts; the
    longest patience counts. None without any.
    """
    if len(contexts) <= 1:
        return contexts[0] if contexts else None
    annotations: dict[str, str] = {}
    # Backwards, so that the annotations of the first plugin stay.
    for each in reversed(contexts):
        annotations |= each.written
    return BindContext(
        volumes=tuple(volume for each in contexts for volume in each.volumes),
        provisions=tuple(claim for each in contexts for claim in each.provisions),
        devices=tuple(devices for each in contexts for devices in each.devices),
        timeout_s=max(each.timeout_s for each in contexts),
        annotations=tuple(sorted(annotations.items())),
        locks=tuple(lock for each in contexts for lock in each.locks),
    )


# --- Points of nodes and domains

S = TypeVar("S")


def lifted_filters(plugin: str, rule: NodeTest | Sequence[NodeFilter]) -> Sequence[NodeFilter]:
    """Return a plugin's filters: a plain function of a task and a node becomes one whose answers are not shared."""
    return [PerNodeFilter(plugin, rule)] if callable(rule) else rule


def lifted_scorers(plugin: str, rule: NodeRate | Sequence[NodeScorer]) -> Sequence[NodeScorer]:
    """Return a plugin's scorers, likewise."""
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
        """Return the total score by name."""
        totals = dict.fromkeys(names, 0.0)
        for score in self.rules:
            for name, value in score(sub_job, names, alone=alone).items():
                totals[name] += value
        return totals


class Gradient(Point[Callable[[S, "Domain", str], "list[list[Domain]] | None"]], Generic[S]):
    """Domains to try for (a job or a group, a domain, "allocate" or "evict"), nearest first, from the first
    plugin with an answer; without one the domain itself.
    """

    __slots__ = ()

    def __call__(self, subject: S, domain: Domain, purpose: str = "allocate") -> list[list[Domain]]:
        """Return the domains."""
        for ask in self.rules:
            answer = ask(subject, domain, purpose)
            if answer is not None:
                return answer
        return [[domain]]


class NodePoints:
    """The points about nodes. `pre_predicate` raises FitFailure when no node can take the task."""

    def __init__(self, listed: Listed) -> None:
        self.pre_predicate: Notified[Task] = Notified("PrePredicate", listed)
        self.predicate = FilterPoint("Predicate", listed)
        self.node_order = ScorerPoint("NodeOrder", listed)
        self.batch_node_order = ScorerPoint("BatchNodeOrder", listed)
        self.hyper_node_order = HyperNodeOrder("HyperNodeOrder", listed)
        self.hyper_node_gradient_for_job: Gradient[Job] = Gradient("HyperNodeGradientForJob", listed)
        self.hyper_node_gradient_for_sub_job: Gradient[SubJob] = Gradient("HyperNodeGradientForSubJob", listed)


# --- Trials of a preemption
# Source: Volcano `framework/session_plugins.go` (SimulateRemoveTask, SimulateAddTask, SimulatePredicate,
# SimulateAllocatable). `state` belongs to one trial on one node and starts empty; a plugin keeps its part under its
# own name and starts it from the session as it stands. The session itself must not change. A text is an error.

State = dict[str, Any]


class Quiet(Point[Callable[["Task"], bool]]):
    """A plugin's answer whether its simulations ignore a preemptor."""

    __slots__ = ()

    def __call__(self, preemptor: Task, plugins: frozenset[str]) -> bool:
        """Return whether that is so of all of these plugins."""
        known = dict(self.named)
        # A plugin without an answer counts as one that simulates something.
        return all(name in known and known[name](preemptor) for name in plugins)


class TrialPoints:
    """The points of trials. The first error counts; `simulate_allocatable` (state, queue, preemptor): all must agree.

    `simulate_add_task` and `simulate_remove_task`: (state, preemptor, task, node's row); `simulate_predicate`: (state,
    preemptor, node's row).
    """

    def __init__(self, listed: Listed) -> None:
        self.simulate_add_task: FirstAnswer[str, State, Task, Task, int] = FirstAnswer("SimulateAddTask", listed)
        self.simulate_remove_task: FirstAnswer[str, State, Task, Task, int] = FirstAnswer("SimulateRemoveTask", listed)
        self.simulate_predicate: FirstAnswer[str, State, Task, int] = FirstAnswer("SimulatePredicate", listed)
        self.simulate_allocatable: AllAgree[State, Queue, Task] = AllAgree("SimulateAllocatable", listed)
        self.simulates_nothing = Quiet("SimulatesNothing", listed)

    def needs_no_trial(self, preemptor: Task) -> bool:
        """Return whether no plugin would simulate anything for the preemptor."""
        changing = *self.simulate_add_task.names, *self.simulate_remove_task.names
        asked = *self.simulate_predicate.names, *self.simulate_allocatable.names
        return self.simulates_nothing(preemptor, frozenset({*changing, *asked}))


class Points(OrderPoints, VotePoints, VictimPoints, TrialPoints, NodePoints, BindingPoints):
    """All points. A point's `add(plugin, rule)` registers; its call asks all consulted plugins and merges their
    answers.

    `unforeseeable`: whether a rule stands somewhere that may tell any two tasks apart; `tells_reclaimers_apart`:
    whether one about victims of reclaim reads more of a waiting job than its queue and its priority; `shows_devices`:
    whether a process outside is shown the state of devices, the scores of the last filter included.
    """

    def __init__(self, config: SchedulerConfig, as_batch: AsBatch) -> None:
        listed = listed_plugins(itself(config))
        OrderPoints.__init__(self, listed)
        VotePoints.__init__(self, listed)
        VictimPoints.__init__(self, listed, frozenset(config.pumice.fix), as_batch)
        TrialPoints.__init__(self, listed)
        NodePoints.__init__(self, listed)
        BindingPoints.__init__(self, listed)
        self.unforeseeable = self.tells_reclaimers_apart = self.shows_devices = False

    def renew(self) -> None:
        """Begin another session with the same rules: the numbers by which jobs are ordered are read again."""
        self.job_order.forget()

    def tell(self, trail: Trail) -> None:
        """Report the plugins' answers about victims and admissions to the trail from now on."""
        for point in (self.preemptable, self.reclaimable, self.unified_evictable, self.victim_tasks):
            point.heard_by = trail.elections
        self.job_enqueueable.heard_by = trail.admission

    def by_name(self) -> dict[str, Point[Any]]:
        """Return Volcano's name of each point -> the point."""
        return {point.name: point for point in self.by_attribute().values()}

    def by_attribute(self) -> dict[str, Point[Any]]:
        """Return the attribute of each point -> the point."""
        return {attribute: point for attribute, point in vars(self).items() if isinstance(point, Point)}
