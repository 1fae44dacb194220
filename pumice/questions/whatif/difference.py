# SPDX-License-Identifier: Apache-2.0
"""Two futures beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Final, TypeVar

import msgspec

from pumice.questions.measures.figures import QueueFigures
from pumice.questions.whatif.future import EvictedPod, Future, JobFuture, PendingJob
from pumice.questions.whatif.loops import EvictionLoop, loops_of
from pumice.results import Result, Sides

T = TypeVar("T")


class ChangeCode(StrEnum):
    """Change of a job, as stable words; the first that holds."""

    COMES = "Comes"
    GOES = "Goes"
    STARTS = "Starts"
    STARTS_NO_MORE = "StartsNoMore"
    STARTS_EARLIER = "StartsEarlier"
    STARTS_LATER = "StartsLater"
    ALL_PLACED = "AllPlaced"
    ALL_PLACED_NO_MORE = "AllPlacedNoMore"
    ALL_PLACED_EARLIER = "AllPlacedEarlier"
    ALL_PLACED_LATER = "AllPlacedLater"
    EVICTED_MORE = "EvictedMore"
    EVICTED_LESS = "EvictedLess"
    RESTARTS_MORE = "RestartsMore"
    RESTARTS_LESS = "RestartsLess"
    KILLED_MORE = "KilledMore"
    KILLED_LESS = "KilledLess"
    ENDS = "Ends"
    ENDS_NO_MORE = "EndsNoMore"
    ENDS_EARLIER = "EndsEarlier"
    ENDS_LATER = "EndsLater"
    LOSES_MORE = "LosesMore"
    LOSES_LESS = "LosesLess"
    OTHER_PODS = "OtherPods"


START: Final = (ChangeCode.STARTS, ChangeCode.STARTS_NO_MORE, ChangeCode.STARTS_EARLIER, ChangeCode.STARTS_LATER)
ALL_PLACED: Final = (
    ChangeCode.ALL_PLACED,
    ChangeCode.ALL_PLACED_NO_MORE,
    ChangeCode.ALL_PLACED_EARLIER,
    ChangeCode.ALL_PLACED_LATER,
)
END: Final = (ChangeCode.ENDS, ChangeCode.ENDS_NO_MORE, ChangeCode.ENDS_EARLIER, ChangeCode.ENDS_LATER)


@dataclass(frozen=True, slots=True)
class JobChange:
    """Change of a job. `by_s`: how much later it starts (or ends, or has all its pods placed, where that is the
    change), below 0: earlier; `all_by_s`: how much later it has all its pods placed. None: unknown.
    """

    code: ChangeCode
    by_s: float | None
    before: JobFuture | None
    after: JobFuture | None
    all_by_s: float | None = None


class EvictionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that is evicted in the changed future: see `EvictedPod`. `for`: the job that needs the room, "" for none;
    `new`: it is not evicted for that in the unchanged future.
    """

    at_s: float
    pod: str
    job: str
    preemptor: str
    action: str
    reason: str
    node: str
    returns_s: float | None
    ran_s: float | None
    votes: tuple[str, ...]
    by: str = msgspec.field(name="for")
    new: bool


class Unknown(msgspec.Struct, frozen=True):
    """Pods without a duration, and the assumed one in seconds; null: they do not end."""

    running: int
    waiting: int
    supposed_s: float | None


class FutureChanges(Result, kw_only=True, tag="whatif/1"):
    """Differences between the unchanged and the changed future, over `horizon_s` seconds: jobs that differ; pods
    evicted in the changed one, and `spared` ones; its eviction loops, and the ended ones; the used parts of resources;
    jobs that wait at the end; pods that are placed on other nodes.

    `denied`: what was asked of the cluster in vain. `supposed`: what was not asked of processes outside, and what
    else a future leaves out, in sentences.
    """

    same: bool
    horizon_s: float
    jobs: dict[str, JobChange]
    evicted: list[EvictionRow]
    spared: list[str]
    loops: tuple[EvictionLoop, ...]
    loops_ended: tuple[EvictionLoop, ...]
    queues: dict[str, Sides[QueueFigures | None]]
    utilisation: dict[str, Sides[float]]
    pending: dict[str, Sides[PendingJob | None]]
    moved: int
    moved_pods: dict[str, Sides[str]]
    denied: dict[str, str]
    cycles: Sides[int]
    unknown: Unknown
    supposed: list[str]


@dataclass(frozen=True, slots=True)
class FutureDifference:
    """Both futures compared. `jobs`: those that differ; `loops` of the second future, `ended`: those of the first
    alone.

    `moved`: pods that are placed on other nodes.
    """

    before: Future
    after: Future
    jobs: dict[str, JobChange] = field(default_factory=dict[str, JobChange])
    loops: tuple[EvictionLoop, ...] = ()
    ended: tuple[EvictionLoop, ...] = ()
    moved: int = 0

    @property
    def same(self) -> bool:
        """Return whether no reported part differs."""
        before, after = self.before, self.after
        return (
            not self.jobs
            and not self.moved
            and _essence(before) == _essence(after)
            and (before.queues, before.resources, before.pending) == (after.queues, after.resources, after.pending)
        )

    @property
    def moved_pods(self) -> dict[str, tuple[str, str]]:
        """Return pod -> its nodes in either future, where these differ."""
        was, now = self.before.placements, self.after.placements
        return {pod: (was[pod], now[pod]) for pod in sorted(now) if pod in was and was[pod] != now[pod]}

    @property
    def supposed(self) -> list[str]:
        """Return the assumptions of both futures."""
        return list(dict.fromkeys([*self.before.supposed, *self.after.supposed]))

    @property
    def spared(self) -> list[str]:
        """Return pods that are evicted in the first future and not in the second."""
        return [each.pod for each in self.before.evictions if not _is_in(each, self.after)]

    def result(self) -> FutureChanges:
        """Return it as `pumice whatif` prints it."""
        before, after = self.before, self.after
        return FutureChanges(
            same=self.same,
            horizon_s=after.horizon_s,
            jobs=self.jobs,
            evicted=[EvictionRow(**asdict(each), new=not _is_in(each, before)) for each in after.evictions],
            spared=self.spared,
            loops=self.loops,
            loops_ended=self.ended,
            queues=_sides(before.queues, after.queues),
            utilisation={
                name: Sides(_used(before, name), _used(after, name))
                for name in dict.fromkeys([*before.resources, *after.resources])
            },
            pending=_sides(before.pending, after.pending),
            moved=self.moved,
            moved_pods={pod: Sides(was, now) for pod, (was, now) in self.moved_pods.items()},
            denied=dict(after.denied),
            cycles=Sides(before.cycles, after.cycles),
            unknown=Unknown(after.unknown_running, after.unknown_waiting, after.supposed_s or None),
            supposed=self.supposed,
        )


def difference(before: Future, after: Future) -> FutureDifference:
    """Return the differences of the second future from the first."""
    names = sorted({*before.jobs, *after.jobs})
    found = {name: change for name in names if (change := _change(before.jobs.get(name), after.jobs.get(name)))}
    was, now = (
        loops_of(each.evictions, {job: found.queue for job, found in each.jobs.items()}) for each in (before, after)
    )
    still = {loop.who for loop in now}
    ended = tuple(loop for loop in was if loop.who not in still)
    places = before.placements
    moved = sum(node != places[pod] for pod, node in after.placements.items() if pod in places)
    return FutureDifference(before, after, found, now, ended, moved)


def _change(before: JobFuture | None, after: JobFuture | None) -> JobChange | None:
    if before == after:
        return None
    if (was := _stays(before)) != _stays(after):
        return JobChange(ChangeCode.GOES if was else ChangeCode.COMES, None, before, after)
    if before is None or after is None:
        return None  # deleted in the one, never there in the other
    placed = _moved(before.all_placed_s, after.all_placed_s, ALL_PLACED)
    code, by_s = (
        _moved(before.start_s, after.start_s, START)
        or placed
        or _more_or_less(before.evictions, after.evictions, ChangeCode.EVICTED_MORE, ChangeCode.EVICTED_LESS)
        or _more_or_less(before.restarts, after.restarts, ChangeCode.RESTARTS_MORE, ChangeCode.RESTARTS_LESS)
        or _more_or_less(before.killed, after.killed, ChangeCode.KILLED_MORE, ChangeCode.KILLED_LESS)
        or _moved(before.end_s, after.end_s, END)
        or _more_or_less(before.lost_pod_s, after.lost_pod_s, ChangeCode.LOSES_MORE, ChangeCode.LOSES_LESS)
        or (ChangeCode.OTHER_PODS, None)
    )
    return JobChange(code, by_s, before, after, placed[1] if placed else None)


def _stays(job: JobFuture | None) -> bool:
    return job is not None and job.gone_s is None


def _moved(was: float | None, now: float | None, codes: Sequence[ChangeCode]) -> tuple[ChangeCode, float | None] | None:
    """Return the code of a moved time. `codes`: it comes, does not come, comes earlier, comes later."""
    if was == now:
        return None
    comes, no_more, earlier, later = codes
    if was is None or now is None:
        return (comes if was is None else no_more), None
    return (earlier if now < was else later), round(now - was, 3)


def _more_or_less(was: float, now: float, more: ChangeCode, less: ChangeCode) -> tuple[ChangeCode, float | None] | None:
    return None if was == now else (more if now > was else less, None)


def _essence(future: Future) -> list[tuple[str, str, float]]:
    return [(each.pod, each.by, each.at_s) for each in future.evictions]


def _is_in(each: EvictedPod, future: Future) -> bool:
    return any((other.pod, other.by) == (each.pod, each.by) for other in future.evictions)


def _used(future: Future, resource: str) -> float:
    found = future.resources.get(resource)
    return found.utilisation if found is not None else 0.0


def _sides(before: Mapping[str, T], after: Mapping[str, T]) -> dict[str, Sides[T | None]]:
    """Return by name both futures' parts."""
    return {name: Sides(before.get(name), after.get(name)) for name in sorted({*before, *after})}
