"""Trials of a preemption, one node at a time: what plugins simulate while tasks are taken away and put back. Source:
Volcano `framework/session_plugins.go` (SimulateRemoveTask, SimulateAddTask, SimulatePredicate, SimulateAllocatable).

`state` belongs to one trial on one node and starts empty; a plugin keeps its part under its own name and starts it from
the session as it stands. The session itself must not change. A text is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pumice.core.session.points.point import Point
from pumice.core.session.points.votes import AllAgree, FirstAnswer

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.points.listed import Listed

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
