"""All extension points of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pumice.core.session.points.binding import BindingPoints
from pumice.core.session.points.listed import listed_plugins
from pumice.core.session.points.node_points import NodePoints
from pumice.core.session.points.orders import OrderPoints
from pumice.core.session.points.point import Point
from pumice.core.session.points.victims import VictimPoints
from pumice.core.session.points.votes import AllAgree, FirstAnswer, VotePoints
from pumice.core.state.derived import itself

if TYPE_CHECKING:
    from pumice.config.schema import SchedulerConfig
    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.points.listed import Listed
    from pumice.core.session.points.victims import AsBatch
    from pumice.core.session.trail.trail import Trail

# --- Trials of a preemption, one node at a time: what plugins simulate while tasks are taken away and put back.
# Source: Volcano `framework/session_plugins.go` (SimulateRemoveTask, SimulateAddTask, SimulatePredicate,
# SimulateAllocatable). `state` belongs to one trial on one node and starts empty; a plugin keeps its part under its
# own name and starts it from the session as it stands. The session itself must not change. A text is an error.

State = dict[str, Any]


class Quiet(Point[Callable[["Task"], bool]]):
    """Whether a plugin's simulations have nothing to say about a preemptor."""

    __slots__ = ()

    def __call__(self, preemptor: Task, plugins: frozenset[str]) -> bool:
        """Whether that is so of all of these plugins."""
        known = dict(self.named)
        return all(name in known and known[name](preemptor) for name in plugins)


class TrialPoints:
    """The first error counts; `simulate_allocatable` (state, queue, preemptor): all must agree.

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
        """Whether no plugin would simulate anything for it."""
        changing = *self.simulate_add_task.names, *self.simulate_remove_task.names
        asked = *self.simulate_predicate.names, *self.simulate_allocatable.names
        return self.simulates_nothing(preemptor, frozenset({*changing, *asked}))


# ---


class Points(OrderPoints, VotePoints, VictimPoints, TrialPoints, NodePoints, BindingPoints):
    """A point's `add(plugin, rule)` registers, its call asks all who are consulted and merges what they say.

    `unforeseeable`: whether a rule stands somewhere that may tell any two tasks apart.
    """

    def __init__(self, config: SchedulerConfig, as_batch: AsBatch) -> None:
        listed = listed_plugins(itself(config))
        OrderPoints.__init__(self, listed)
        VotePoints.__init__(self, listed)
        VictimPoints.__init__(self, listed, frozenset(config.pumice.fix), as_batch)
        TrialPoints.__init__(self, listed)
        NodePoints.__init__(self, listed)
        BindingPoints.__init__(self, listed)
        self.unforeseeable = False

    def tell(self, trail: Trail) -> None:
        """From now on the trail hears what plugins say of victims and of who asks to be admitted."""
        for point in (self.preemptable, self.reclaimable, self.unified_evictable, self.victim_tasks):
            point.heard_by = trail.elections
        self.job_enqueueable.heard_by = trail.admission

    def by_name(self) -> dict[str, Point[Any]]:
        """Volcano's name of each point -> the point."""
        return {point.name: point for point in self.by_attribute().values()}

    def by_attribute(self) -> dict[str, Point[Any]]:
        """The attribute of each point -> the point."""
        return {attribute: point for attribute, point in vars(self).items() if isinstance(point, Point)}
