"""The time for trying what would help: who works for the advice asks whether it is over, also in the middle."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from core.cycle import Trail

if TYPE_CHECKING:
    from core.objects.pod import Task
    from core.session.trail.records import Ending
    from core.state.jobs import Job

T = TypeVar("T")
Spent = Callable[[], bool]


class TimeOverError(Exception):
    """The time for trying is over."""


def budget(seconds: float) -> Spent:
    """Whether that time is over."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def demand_time(spent: Spent) -> None:
    """Raises TimeOverError."""
    if spent():
        raise TimeOverError


def while_time(items: Iterable[T], spent: Spent) -> Iterator[T]:
    """One by one. Raises TimeOverError before one for which there is no time left."""
    for item in items:
        demand_time(spent)
        yield item


class TimedTrail(Trail):
    """The trail of one job in a cycle that is broken off (TimeOverError) when the time is over: at the next job or task
    that an action is done with.
    """

    def __init__(self, job: str, spent: Spent) -> None:
        super().__init__((), frozenset([job]))
        self._spent = spent

    def job_ended(self, job: Job, ending: Ending, detail: str = "", domain: str = "") -> None:
        """The action is done with the job for now, or with one HyperNode for it."""
        demand_time(self._spent)
        super().job_ended(job, ending, detail, domain)

    def task_ended(self, task: Task, ending: Ending, detail: str = "", node: int = -1) -> None:
        """The action is done with the task, or with one node for it."""
        demand_time(self._spent)
        super().task_ended(task, ending, detail, node)
