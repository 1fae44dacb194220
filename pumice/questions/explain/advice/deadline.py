"""The work for trying what would help: who works for the advice counts it, and stops in the middle when it is over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from pumice.core.cycle import Trail
from pumice.work import OBJECT, WorkBudget, WorkOverError, of_step

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.trail.records import Ending
    from pumice.core.state.jobs import Job

T = TypeVar("T")
Spent = WorkBudget
TimeOverError = WorkOverError


def budget(seconds: float) -> WorkBudget:
    """The work that so many seconds stand for."""
    return WorkBudget.of_seconds(seconds)


def demand_time(spent: Spent) -> None:
    """Raises TimeOverError."""
    spent.demand()


def while_time(items: Iterable[T], spent: Spent) -> Iterator[T]:
    """One by one, each an object that is read. Raises TimeOverError before one for which nothing is left."""
    for item in items:
        spent.demand(OBJECT)
        yield item


class TimedTrail(Trail):
    """The trail of one job in a cycle that is broken off (TimeOverError) when the work is over: at the next job or task
    that an action is done with. `nodes`: how many there are.
    """

    def __init__(self, job: str, spent: Spent, nodes: int) -> None:
        super().__init__((), frozenset([job]))
        self._spent, self._step = spent, of_step(nodes)

    def job_ended(self, job: Job, ending: Ending, detail: str = "", domain: str = "") -> None:
        """The action is done with the job for now, or with one HyperNode for it."""
        self._spent.demand(self._step)
        super().job_ended(job, ending, detail, domain)

    def task_ended(self, task: Task, ending: Ending, detail: str = "", node: int = -1) -> None:
        """The action is done with the task, or with one node for it."""
        self._spent.demand(self._step)
        super().task_ended(task, ending, detail, node)
