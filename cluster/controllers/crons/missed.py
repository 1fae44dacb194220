"""Which time of a schedule is due (source: Kubernetes' and Volcano's cronjob controllers, `mostRecentScheduleTime`)."""

from __future__ import annotations

from dataclasses import dataclass

from pumice.cluster.kube.schedules import TimesOfSchedule

MANY = 100
"""So many times that were missed are worth a warning."""


@dataclass(frozen=True, slots=True)
class DueTime:
    """`at`: the last time up to now, in seconds; None: there was none. `missed`: about how many there were."""

    at: float | None = None
    missed: int = 0


def due_time(schedule: TimesOfSchedule, since: float, now: float) -> DueTime:
    """The last time of a schedule after `since` and up to `now`.

    Times are not counted one by one, which would take long after years. Raises ValueError where two fall together.
    """
    first = schedule.after(since)
    if first is None:  # Go's zero time follows itself there
        raise ValueError("time difference between two schedules is less than 1 second")
    if now < first:
        return DueTime()
    second = schedule.after(first)
    if second is None or now < second:
        return DueTime(first)
    apart = round(second - first)
    if apart < 1:
        raise ValueError("time difference between two schedules is less than 1 second")
    missed = int(now - first) // apart + 1
    return DueTime(_last(schedule, first, apart, missed, now), missed)


def _last(schedule: TimesOfSchedule, first: float, apart: int, missed: int, now: float) -> float:
    """The last time up to `now`: looked for from ever further back, since times may be less regular than the first two.

    Kubernetes looks back once, and passes over the time where that is not far enough.
    """
    at, back = first, 2
    while True:
        start = first + max(missed - back, 0) * apart
        coming = schedule.after(start)
        while coming is not None and coming <= now:
            at, coming = coming, schedule.after(coming)
        if at > first or start == first:
            return at
        back *= 2
