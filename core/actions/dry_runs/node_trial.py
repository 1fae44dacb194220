"""Topology-aware preemption on one node: take victims away until the task fits, then give back who need not go.

Nothing in the session changes: the node's room is a copy, plugins keep their part of the trial in its state.
Source: Volcano `actions/preempt` (SelectVictimsOnNode).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pumice.core.actions.victims.on_node import add_request, available, fits, make_room
from pumice.core.session.victim_order import victim_queue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.session import Session

FIX = "dry-run-asks-queue"


@dataclass(slots=True)
class NodeTrial:
    """One node's copy: what is free there for the preemptor, and what the plugins simulate."""

    session: Session
    preemptor: Task
    queue: Queue
    node: int
    room: dict[int, float]
    state: dict[str, Any] = field(default_factory=dict[str, Any])

    def remove(self, task: Task) -> bool:
        """Take the task off. False: a plugin failed."""
        error = self.session.points.simulate_remove_task(self.state, self.preemptor, task, self.node)
        if error is None:
            add_request(self.room, task)
        return error is None

    def add(self, task: Task) -> bool:
        """Put it back."""
        error = self.session.points.simulate_add_task(self.state, self.preemptor, task, self.node)
        if error is None:
            for dimension, value in task.template.items:
                if dimension in self.room:
                    self.room[dimension] -= value
        return error is None

    def admits(self) -> bool:
        """Whether the filters let the preemptor in, as the trial stands."""
        return self.session.points.simulate_predicate(self.state, self.preemptor, self.node) is None

    def fits(self) -> bool:
        """Whether the queue may have it, the node has room, and the filters agree."""
        if not self.session.points.simulate_allocatable(self.state, self.queue, self.preemptor):
            return False
        return fits(self.preemptor, self.room) and self.admits()


def select_victims(
    session: Session, preemptor: Task, queue: Queue, node: int, candidates: Sequence[Task]
) -> list[Task]:
    """Who of the candidates on the node must go so that the preemptor fits there, most important first; empty: it
    cannot, or needs nobody.
    """
    if not make_room(session, preemptor, node, candidates):
        return []
    trial = NodeTrial(session, preemptor, queue, node, available(session, preemptor, node, ()))
    removed: list[Task] = []
    waiting = victim_queue(session, candidates, preemptor)
    while len(waiting):
        task = waiting.pop()
        removed.append(task)
        if not trial.remove(task):
            return []
        if trial.fits():
            break
    # Volcano does not ask Allocatable again: where the queue never had room, all that was taken away stays away.
    may_have = trial.fits() if FIX in session.config.pumice.fix else trial.admits()
    if not removed or not may_have:
        return []
    return _reprieve(trial, removed)


def _reprieve(trial: NodeTrial, removed: list[Task]) -> list[Task]:
    """Put back, the most important first, whom the preemptor fits beside."""
    victims: list[Task] = []
    for task in reversed(removed):
        if not trial.add(task):
            return []
        if not trial.fits():
            if not trial.remove(task):
                return []
            victims.append(task)
    return victims
