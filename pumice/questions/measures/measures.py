# SPDX-License-Identifier: Apache-2.0
"""The measures of a whole journal: a row for each job and queue, series over time, and one summary."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final, TypedDict

from pumice.config.load import default_text
from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import deserved_in
from pumice.core.fold.shown import Shown
from pumice.core.messages.events import ConfigLoaded, CycleRecord, Mutation
from pumice.core.messages.queue_tables import QueueTables, gauged, readable
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.parts import WATCHED
from pumice.core.plugins import accounts_of
from pumice.core.session.carry import CycleClock
from pumice.core.state.view import View
from pumice.core.state.volumes import volume_rules
from pumice.questions.measures.beginning import beginning
from pumice.questions.measures.fairness import jain, quantile
from pumice.questions.measures.jobs import JobRow, Jobs
from pumice.questions.measures.lives import Listener, Lives
from pumice.questions.measures.over_time import Grid, Steps
from pumice.questions.measures.resource_use import ResourceUse
from pumice.results import Result
from pumice.storage import codec
from pumice.storage.records import content

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pumice.config.schema import SchedulerConfig
    from pumice.questions.measures.lives import GroupLife, PodLife
    from pumice.storage.journal import Journal, Stored

# --- Deserved amounts

DESERVED: Final = "deserved"
_WATCHED: Final = frozenset(WATCHED)


class Deserved:
    """The deserved amounts (cores, bytes, pieces) by (queue, resource) as series. They are computed once in every span
    with cycles, of the last of them, and hold until the next.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self.series: defaultdict[tuple[str, str], Steps] = defaultdict(lambda: Steps(grid))
        self._last: CycleClock | None = None
        self._asked: tuple[SchedulerConfig, SchedulerConfig] | None = None  # and its accounts
        self._tables: tuple[QueueTables, ...] = ()
        self._told: dict[tuple[str, str], float] = {}  # what they say

    def decided(self, clock: CycleClock) -> None:
        """Note a cycle of Volcano's."""
        self._last = clock

    def until(self, at: float, view: View, config: SchedulerConfig) -> None:
        """Advance to this moment, with all earlier changes in the view: at the end of a cycle's span, read the
        plugins' numbers.
        """
        last = self._last
        if last is None or at < self._end_of(last.now):
            return
        self._last = None
        snapshot = view.snapshot(volume_rules(config), kept=True)
        tables = deserved_in(snapshot, self._accounts(config), last)
        if tables != self._tables:
            self._tables, self._told = tables, _deserved(tables)
        told = self._told
        for key in {*self.series, *told}:
            self.series[key].set(told.get(key, 0.0), last.now)

    def _accounts(self, config: SchedulerConfig) -> SchedulerConfig:
        # one object for each: sessions remember by it in which order plugins are asked
        if self._asked is None or self._asked[0] is not config:
            self._asked = config, accounts_of(config)
        return self._asked[1]

    def _end_of(self, now: float) -> float:
        began, width = self._grid.began, self._grid.width
        return began + ((now - began) // width + 1) * width


def _deserved(tables: tuple[QueueTables, ...]) -> dict[tuple[str, str], float]:
    gauges = readable(tables, DESERVED).by_queue()
    return {
        (queue, resource): amount for queue, of in gauges.items() for resource, amount in gauged(of, DESERVED).items()
    }


class DeservedInJournal:
    """Follows a journal."""

    def __init__(self, deserved: Deserved) -> None:
        self._deserved = deserved
        self._shown: Shown[View] = Shown(View)
        self._config = _parsed("")

    def note(self, mutation: Mutation) -> None:
        """Note a change of the api's truth."""
        if mutation.kind in _WATCHED:
            self._shown.see(mutation.type, codec.unpack(mutation.blob))

    def follow(self, stored: Stored) -> None:
        """Follow the next record."""
        self._deserved.until(stored.at, self._shown.view, self._config)
        match content(stored):
            case Mutation() as mutation:
                self.note(mutation)
            case ConfigLoaded(text=text, error=error) if not error:
                self._config = _parsed(text)
            case CycleRecord(scheduler="") as cycle:
                self._deserved.decided(CycleClock(cycle.cycle, cycle.now, cycle.seed))
            case _:
                pass

    def end(self) -> None:
        """Note the end of the journal."""
        self._deserved.until(inf, self._shown.view, self._config)


def _parsed(text: str) -> SchedulerConfig:
    """Parse a configuration of a journal. It was accepted once, so it is read leniently."""
    return parse_scheduler_config(text or default_text(), source="journal", lenient=True)


@dataclass
class QueueRow:
    """Measures of the jobs of one queue. Times in seconds; None without jobs. Waits are of all its jobs: those that
    have not started (`unstarted`) have waited until the end, at least.

    `resources`: by resource, amount × seconds that pods asked for (from creation to end) and held, and that the queue
    deserved; and what part of all there was they held.
    """

    queue: str
    weight: int = 1
    jobs: int = 0
    pods: int = 0
    ended: int = 0
    unstarted: int = 0
    evictions: int = 0
    killed: int = 0
    restarts: int = 0
    lost_cpu_s: float = 0.0
    mean_wait_s: float | None = None
    median_wait_s: float | None = None
    p95_wait_s: float | None = None
    mean_bounded_slowdown: float | None = None
    resources: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])


@dataclass
class Series:
    """One amount over time: `values[i]` is the mean over the `width_s` seconds from `starts_s[i]` on (the last: less).

    `queue` is "" for the whole cluster. `what`: waiting, held, deserved, capacity or fragmentation (a part of one).
    """

    what: str
    resource: str
    queue: str
    values: list[float]


class ResourceSummary(TypedDict):
    """One resource of the whole cluster: available, requested and held amount × seconds; `utilisation`: the held part,
    `fragmentation`: the part of the free amount that was in too small pieces for the waiting pods.
    """

    capacity_s: float
    requested_s: float
    held_s: float
    utilisation: float
    fragmentation: float


class StageMeans(TypedDict):
    """The mean wait, in seconds, for admission and for nodes; null without jobs."""

    mean_admission_s: float | None
    mean_scheduling_s: float | None


class MeasuresSummary(StageMeans):
    """The whole run: counts over all queues, and times in seconds; null without jobs. Waits are of all jobs, those that
    have not started having waited until the end at least; `jain_of_*`: evenness of slowdowns and shares, 1 at best.
    """

    jobs: int
    ended: int
    pods: int
    unstarted: int
    evictions: int
    killed: int
    restarts: int
    lost_cpu_s: float
    makespan_s: float | None
    mean_wait_s: float | None
    median_wait_s: float | None
    p95_wait_s: float | None
    mean_bounded_slowdown: float | None
    jain_of_jobs: float | None
    jain_of_queues: float | None
    resources: dict[str, ResourceSummary]


@dataclass
class Measures:
    """Measures of a run. `began` in seconds since the epoch; everything else in seconds after that."""

    began: float
    horizon_s: float
    queues: list[QueueRow]
    starts_s: list[float]
    series: list[Series]
    summary: MeasuresSummary

    def result(self, jobs: list[JobRow]) -> MeasuresResult:
        """Return it, with the rows of its jobs, as `pumice measures` prints it."""
        resources = self.summary["resources"]
        return MeasuresResult(
            began=self.began,
            horizon_s=self.horizon_s,
            summary=self.summary,
            queues={each.queue: each for each in self.queues},
            jobs=jobs,
            resources=resources,
        )


class MeasuresResult(Result, kw_only=True, tag="measures/2"):
    """Measures of a run in `horizon_s` seconds from `began` on (seconds since the epoch): a row for each queue, by
    name, and for each job, the whole run in one `summary`, and its `resources` by name.
    """

    began: float
    horizon_s: float
    summary: MeasuresSummary
    queues: dict[str, QueueRow]
    jobs: list[JobRow]
    resources: dict[str, ResourceSummary]


class Stages:
    """Splits waits in those for admission and those for nodes, over all jobs: an unfinished wait lasts until
    the end.
    """

    def __init__(self) -> None:
        self._count, self._admission, self._scheduling = 0, 0.0, 0.0
        self._outside: list[float] = []
        self._unplaced: list[float] = []

    def note(self, row: JobRow) -> None:
        """Count one job, whose times are finished."""
        self._count += 1
        if row.admission_s is None:
            self._outside.append(row.submitted)
            return
        self._admission += row.admission_s
        if row.scheduling_s is None:
            self._unplaced.append(row.submitted + row.admission_s)
        else:
            self._scheduling += row.scheduling_s

    def means(self, horizon_s: float) -> StageMeans:
        """Return the mean of either, which add up to the mean wait."""
        admission = self._admission + sum(horizon_s - at for at in self._outside)
        scheduling = self._scheduling + sum(horizon_s - at for at in self._unplaced)
        return {
            "mean_admission_s": round(admission / self._count, 3) if self._count else None,
            "mean_scheduling_s": round(scheduling / self._count, 3) if self._count else None,
        }


class Measuring(Listener):
    """Takes lives, and yields job rows as they end. `end` returns the measures."""

    def __init__(self, began: float, each: Callable[[JobRow], None] | None = None) -> None:
        self.grid = Grid(began)
        self.usage = ResourceUse(self.grid)
        self.deserved = Deserved(self.grid)
        self.each = each
        self._weights: dict[str, int] = {}
        self._rows: dict[str, QueueRow] = {}
        self._waits: dict[str, list[float]] = {}
        self._unstarted: dict[str, list[float]] = {}
        self._slowdowns: dict[str, list[float]] = {}
        self._stages = Stages()
        self._work: float | None = None
        self._before_work: dict[str, float] = {}
        self._first: float | None = None
        self._last: float | None = None
        self.jobs = Jobs(self._done)
        self.jobs.began = began

    def listeners(self) -> Sequence[Listener]:
        """Return the listeners that receive the lives."""
        return (self.jobs, self.usage, self)

    def queue(self, name: str, queue: Object | None, at: float) -> None:
        """Note a queue; its weight is kept after its deletion."""
        if queue is not None:
            self._weights[name] = int(section(queue, "spec").get("weight") or 1)

    def pod_created(self, pod: PodLife) -> None:
        """Note a new pod: with the first work capacity begins to count."""
        self._begin_work(pod.created)

    def group(self, group: GroupLife) -> None:
        """Note a PodGroup: a job may have no pods for long."""
        self._begin_work(group.created)

    def job(self, name: str, job: Object | None, at: float) -> None:
        """Note a Volcano Job, which exists before its PodGroup."""
        self._begin_work(at)

    def _begin_work(self, at: float) -> None:
        """Leave out the cluster's amounts before the first job: nothing was wasted then."""
        if self._work is None:
            self._work = at
            for resource, series in self.usage.capacity.items():
                series.to(at)
                self._before_work[resource] = series.total

    def _done(self, row: JobRow) -> None:
        if self.each is not None:
            self.each(row)
        queue = self._rows.get(row.queue)
        if queue is None:
            queue = self._rows[row.queue] = QueueRow(row.queue)
        self._stages.note(row)
        queue.jobs += 1
        queue.pods += row.pods
        queue.ended += row.ended is not None
        queue.evictions += row.evictions
        queue.killed += row.killed
        queue.restarts += row.restarts
        queue.lost_cpu_s = round(queue.lost_cpu_s + row.lost_cpu_s, 3)
        if row.wait_s is not None:
            self._waits.setdefault(row.queue, []).append(row.wait_s)
        else:
            queue.unstarted += 1
            self._unstarted.setdefault(row.queue, []).append(row.submitted)
        if row.bounded_slowdown is not None:
            self._slowdowns.setdefault(row.queue, []).append(row.bounded_slowdown)
        self._first = row.submitted if self._first is None else min(self._first, row.submitted)
        if row.ended is not None:
            self._last = row.ended if self._last is None else max(self._last, row.ended)

    def end(self, until: float) -> Measures:
        """Return all that was, up to a moment (seconds since the epoch)."""
        self.jobs.close()
        horizon = until - self.grid.began
        for name, submitted in self._unstarted.items():
            self._waits.setdefault(name, []).extend(round(horizon - at, 3) for at in submitted)
        for name, row in self._rows.items():
            self._finish(row, name, until)
        queues = [self._rows[name] for name in sorted(self._rows)]
        series = self._series(until)
        count = len(series[0].values) if series else 0
        return Measures(
            self.grid.began, round(horizon, 3), queues, self.grid.starts(count), series, self._summary(queues, until)
        )

    def _finish(self, row: QueueRow, name: str, until: float) -> None:
        waits, slowdowns = sorted(self._waits.get(name, [])), self._slowdowns.get(name, [])
        row.weight = self._weights.get(name, 1)
        row.mean_wait_s = _mean(waits)
        row.median_wait_s, row.p95_wait_s = (_rounded(quantile(waits, part)) for part in (0.5, 0.95))
        row.mean_bounded_slowdown = _mean(slowdowns)
        for resource in self.usage.resources():
            waiting, held = (self._total(of, name, resource, until) for of in (self.usage.waiting, self.usage.held))
            whole = self._capacity(resource, until)
            if waiting or held:
                row.resources[resource] = {
                    "requested_s": round(waiting + held, 3),
                    "held_s": round(held, 3),
                    "deserved_s": round(self._total(self.deserved.series, name, resource, until), 3),
                    "share": round(held / whole, 4) if whole else 0.0,
                }

    def _total(self, of: Mapping[tuple[str, str], Steps], queue: str, resource: str, until: float) -> float:
        series = of.get((queue, resource))
        if series is None:
            return 0.0
        series.to(until)
        return float(series.total)

    def _capacity(self, resource: str, until: float) -> float:
        series = self.usage.capacity[resource]
        series.to(until)
        return series.total - self._before_work.get(resource, 0.0)

    def _series(self, until: float) -> list[Series]:
        found: list[Series] = []
        usage = self.usage
        for resource in usage.resources():
            found.append(Series("capacity", resource, "", _round(usage.capacity[resource].means(until))))
            found.append(Series("held", resource, "", _round(usage.all_held(resource, until))))
            found.append(Series("fragmentation", resource, "", _round(usage.fragmentation(resource, until))))
            for queue in sorted({*usage.queues(), *(name for name, _ in self.deserved.series)}):
                for what, of in (("held", usage.held), ("waiting", usage.waiting), (DESERVED, self.deserved.series)):
                    if (steps := of.get((queue, resource))) is not None:
                        found.append(Series(what, resource, queue, _round(steps.means(until))))
        return found

    def _summary(self, queues: list[QueueRow], until: float) -> MeasuresSummary:
        waits = sorted(wait for of in self._waits.values() for wait in of)
        slowdowns = [one for of in self._slowdowns.values() for one in of]
        makespan = None if self._last is None or self._first is None else round(self._last - self._first, 3)
        return {
            "jobs": sum(row.jobs for row in queues),
            "ended": sum(row.ended for row in queues),
            "pods": sum(row.pods for row in queues),
            "unstarted": sum(row.unstarted for row in queues),
            "evictions": sum(row.evictions for row in queues),
            "killed": sum(row.killed for row in queues),
            "restarts": sum(row.restarts for row in queues),
            "lost_cpu_s": round(sum(row.lost_cpu_s for row in queues), 3),
            "makespan_s": makespan,
            "mean_wait_s": _mean(waits),
            "median_wait_s": _rounded(quantile(waits, 0.5)),
            "p95_wait_s": _rounded(quantile(waits, 0.95)),
            **self._stages.means(until - self.grid.began),
            "mean_bounded_slowdown": _mean(slowdowns),
            "jain_of_jobs": _rounded(jain([1 / one for one in slowdowns])),
            "jain_of_queues": _rounded(jain(self._dominant(queues))),
            "resources": {resource: self._of_all(resource, queues, until) for resource in self.usage.resources()},
        }

    def _dominant(self, queues: list[QueueRow]) -> list[float]:
        """Return for every queue the greatest share of any resource that it held, for a weight of one."""
        return [max((of["share"] for of in row.resources.values()), default=0.0) / row.weight for row in queues]

    def _of_all(self, resource: str, queues: list[QueueRow], until: float) -> ResourceSummary:
        capacity = self._capacity(resource, until)
        requested, held = (
            sum(row.resources[resource][what] for row in queues if resource in row.resources)
            for what in ("requested_s", "held_s")
        )
        free, torn = capacity - held, self.usage.torn[resource]
        torn.to(until)
        return {
            "capacity_s": round(capacity, 3),
            "requested_s": round(requested, 3),
            "held_s": round(held, 3),
            "utilisation": round(held / capacity, 4) if capacity else 0.0,
            "fragmentation": round(torn.total / free, 4) if free > 0 else 0.0,
        }


async def measure(
    journal: Journal,
    each: Callable[[JobRow], None] | None = None,
    *,
    shares: bool = True,
    sees: Callable[[str], bool] | None = None,
) -> Measures:
    """Return the measures of a journal's run; `each` gets a row for each job as it ends. `shares`: also the queues'
    deserved amounts, which cost a view of the scheduler's; `sees`: as in `Lives`. Raises DamagedError.
    """
    begun = await beginning(journal)
    measuring = Measuring(begun.at, each)
    lives = Lives(measuring.listeners(), sees=sees)
    if not shares:
        return measuring.end(round(await begun.through(journal, lives), 3))
    deserved = DeservedInJournal(measuring.deserved)
    for mutation in begun.there():
        deserved.note(mutation)

    def follow(stored: Stored) -> None:
        lives.follow(stored)
        deserved.follow(stored)

    ended = await begun.through(journal, lives, follow)
    deserved.end()
    return measuring.end(round(ended, 3))


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 3) if values else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _round(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.12g}") for value in values]
