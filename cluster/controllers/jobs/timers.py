"""What is to be done to Jobs later: policies with a timeout, tries again, the end of a finished Job's time to live."""

from __future__ import annotations

from typing import Final

from msgspec import structs

from pumice.cluster.controllers.jobs.life import TARGETED, Action
from pumice.cluster.controllers.jobs.policies import (
    POD_EVICTED,
    POD_FAILED,
    POD_PENDING,
    POD_RUNNING,
    JobTrigger,
    Resolved,
)
from pumice.cluster.controllers.jobs.state import JobKey
from pumice.cluster.timers import Timers

TTL: Final = "ttl"
RETRY: Final = "retry"
DELAY: Final = "delay"

TimerKey = tuple[str, JobKey, str]
"""What for, the Job, the pod of a delayed action."""

_POD_CHANGES: Final = (POD_RUNNING, POD_FAILED, POD_EVICTED)


class JobTimers:
    """One delayed action a pod at most (source: Volcano's `delayActionMap`)."""

    def __init__(self) -> None:
        self._timers: Timers[TimerKey] = Timers()
        self._delayed: dict[TimerKey, Resolved] = {}

    def set(self, purpose: str, job: JobKey, due: float) -> None:
        """A time to live, or another try."""
        self._timers.set((purpose, job, ""), due)

    def drop(self, purpose: str, job: JobKey) -> None:
        """It is not to come any more."""
        self._timers.cancel((purpose, job, ""))

    def is_set(self, purpose: str, job: JobKey) -> bool:
        """Whether it is still to come."""
        return (purpose, job, "") in self._timers

    def delay(self, job: JobKey, resolved: Resolved, now: float) -> None:
        """Carry out an action later; the same one again does not put it off."""
        timer: TimerKey = (DELAY, job, resolved.trigger.pod)
        known = self._delayed.get(timer)
        if known is None or known.action is not resolved.action:
            self._delayed[timer] = resolved
            self._timers.set(timer, now + resolved.delay_s)

    def moved_on(self, job: JobKey, trigger: JobTrigger) -> None:
        """A pod that has moved on takes back what was to be done about where it was."""
        timer: TimerKey = (DELAY, job, trigger.pod)
        delayed = self._delayed.get(timer)
        if delayed is None or trigger.event not in _POD_CHANGES:
            return
        waited = delayed.trigger.event
        # a namesake made in its place may come into view before the old pod's end does
        same_pod = waited == POD_PENDING and trigger.pod_uid == delayed.trigger.pod_uid
        if same_pod or (waited in (POD_FAILED, POD_EVICTED) and trigger.event == POD_RUNNING):
            self._drop(timer)

    def done(self, job: JobKey, resolved: Resolved) -> None:
        """An action has been carried out: others that were to do the same to the same need not."""
        for timer, delayed in list(self._delayed.items()):
            if timer[1] == job and _scope(delayed) == _scope(resolved):
                self._drop(timer)

    def forget(self, job: JobKey) -> None:
        """The Job is gone, or another one has its name."""
        for timer in [timer for timer in self._delayed if timer[1] == job]:
            self._drop(timer)
        for purpose in (TTL, RETRY):
            self._timers.cancel((purpose, job, ""))

    def take_due(self, now: float) -> list[tuple[str, JobKey, JobTrigger]]:
        """What for, the Job, and the trigger that brings a delayed action about without asking the policies again."""
        due: list[tuple[str, JobKey, JobTrigger]] = []
        for timer in self._timers.take_due(now):
            resolved = self._delayed.pop(timer, None)
            due.append((timer[0], timer[1], JobTrigger() if resolved is None else _ordered(resolved)))
        return due

    def next_due(self) -> float | None:
        """The earliest of all, or None."""
        return self._timers.next_due()

    def __len__(self) -> int:
        return len(self._timers)

    def _drop(self, timer: TimerKey) -> None:
        self._delayed.pop(timer, None)
        self._timers.cancel(timer)


def _ordered(resolved: Resolved) -> JobTrigger:
    old = resolved.trigger
    return structs.replace(old, action=resolved.action, policy=resolved.policy)


def _scope(resolved: Resolved) -> tuple[str, str]:
    """What an action is about: the Job, or a task, pod or partition of it."""
    trigger = resolved.trigger
    names: dict[Action, str] = dict(zip(TARGETED, (trigger.task, trigger.pod, trigger.partition), strict=True))
    return (resolved.action, names[resolved.action]) if resolved.action in names else ("job", "")
