# SPDX-License-Identifier: Apache-2.0
"""tdm: nodes that belong to other users at certain hours. Source: Volcano `plugins/tdm` (time-division
multiplexing).
"""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.config.arguments import DURATION, Argument, ArgumentKind, PluginArguments
from pumice.config.time_zones import WallClock, time_zone
from pumice.core.life.task import TaskStatus
from pumice.core.plugins.plugin import BuiltInPlugin, OrderNumber
from pumice.core.session.points.nodes import Reads
from pumice.core.session.points.orders import JobColumn
from pumice.core.session.points.rules import Check, ColumnRule, Score
from pumice.core.session.points.votes import Vote
from pumice.core.session.reasons import Code, Reason
from pumice.core.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

    import numpy.typing as npt

    from pumice.core.objects.pod import Task
    from pumice.core.session.jobs import SessionJobs
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

# --- Zones
# Source: Volcano tdm (`parseRevocableZone`), which reads them by the clock of its machine; here the configuration
# says whose clock it is.

_CLOCK_TIME: Final = re.compile(r"([0-9]{1,2}):([0-9]{2})(.*)", re.ASCII | re.DOTALL)


class ZoneError(ValueError):
    """The reason why a zone cannot be used now, in Volcano's words."""


class Zones:
    """Zones by name, "HH:MM-HH:MM" each by the clock of a time zone, as of `now` (seconds since the epoch).

    A span that ends before it starts runs into the next day. As in Volcano it begins today, so that between midnight
    and its end it is not seen; `past_midnight` (fix) sees it.
    """

    def __init__(
        self, spans: Mapping[str, str], now: float, *, time_zone: tzinfo = UTC, past_midnight: bool = False
    ) -> None:
        self._spans = spans
        self._now = int(now // 1)
        self._clock = WallClock(now, time_zone)
        self._past_midnight = past_midnight
        self._problems: dict[str, str] = {}

    def problem(self, zone: str) -> str:
        """Return why the zone cannot be used now; "" when it can."""
        if zone not in self._problems:
            self._problems[zone] = self._find_problem(zone)
        return self._problems[zone]

    def _find_problem(self, zone: str) -> str:
        if zone not in self._spans:
            return f"revocable zone {zone} not support"
        try:
            first, last = parse_span(self._spans[zone])
        except ZoneError as error:
            return str(error)
        if any(start <= self._now <= end for start, end in self._windows(first, last)):
            return ""
        return f"current time beyond revocable zone {zone}:{self._spans[zone]}"

    def _windows(self, first: int, last: int) -> list[tuple[int, int]]:
        moment, nights = self._clock.moment, int(first >= last)
        days = (-1, 0) if self._past_midnight and nights else (0,)
        return [(moment(day, first), moment(day + nights, last)) for day in days]

    def next_change(self) -> float | None:
        """Return the time when a zone opens or closes next; None without zones."""
        moments: list[int] = []
        for text in self._spans.values():
            try:
                first, last = parse_span(text)
            except ZoneError:
                continue
            # A zone is open to the end of its last second; midnight ends every zone that began the day before.
            moments.append(self._clock.moment(1, 0))
            for day in (0, 1):
                moments += [self._clock.moment(day, first), self._clock.moment(day, last) + 1]
        return float(min((m for m in moments if m > self._now), default=0)) or None


def parse_span(text: str) -> tuple[int, int]:
    """Return (start, end) of "HH:MM-HH:MM" in seconds since midnight. Raises ZoneError."""
    parts = text.strip().split("-")
    if len(parts) != 2:
        raise ZoneError(f"revocable zone {text} format error")
    return parse_clock_time(parts[0]), parse_clock_time(parts[1])


def parse_clock_time(text: str) -> int:
    """Return seconds since midnight of "15:04". Raises ZoneError with the words of Go's time.Parse."""
    match = _CLOCK_TIME.fullmatch(text)
    whole = f'parsing time "{text}"'
    if match is None:
        hour = re.match(r"[0-9]{1,2}", text, re.ASCII)
        rest = text[hour.end() :] if hour else text
        wanted = "15" if hour is None else ":" if not rest.startswith(":") else "04"
        found = rest[1:] if wanted == "04" else rest
        raise ZoneError(f'{whole} as "15:04": cannot parse "{found}" as "{wanted}"')
    hours, minutes = int(match[1]), int(match[2])
    if hours >= 24:
        raise ZoneError(f"{whole}: hour out of range")
    if minutes >= 60:
        raise ZoneError(f"{whole}: minute out of range")
    if match[3]:
        raise ZoneError(f'{whole}: extra text: "{match[3]}"')
    return hours * 3600 + minutes * 60


# --- Filter and scorer

NAME: Final = "tdm"
NOT_ALLOWED: Final = "not allow to dispatch to revocable node"
FULL_SCORE: Final = 100.0


def is_revocable(task: Task) -> bool:
    """Return whether the task may go to nodes that are taken back."""
    return bool(task.revocable_zone)


class RevocableNodes:
    """Filter and scorer in one: both check whether the node's zone is open, and whether the task may be revoked."""

    name = NAME
    reads = Reads(kind=is_revocable)

    def __init__(self, session: Session, zones: Zones) -> None:
        self._zones = [spec.revocable_zone for spec in session.nodes.specs]
        self._problems = [zones.problem(zone) if zone else "" for zone in self._zones]
        self._session = session
        self._codes: dict[bool, Check] = {}

    @property
    def any(self) -> bool:
        """Return whether there are revocable nodes at all."""
        return any(self._zones)


class RevocableFilter(RevocableNodes):
    """Refuses all tasks in a closed zone, and in an open one those that may not be revoked."""

    def prepare(self, session: Session, task: Task) -> Check | None:
        """Return the answer for tasks of this kind."""
        if not self.any:
            return None
        allowed = bool(task.revocable_zone)
        if allowed not in self._codes:
            codes = [
                self._code(zone, problem, allowed) for zone, problem in zip(self._zones, self._problems, strict=True)
            ]
            self._codes[allowed] = ColumnRule(np.array(codes, dtype=np.int32))
        return self._codes[allowed]

    def _code(self, zone: str, problem: str, allowed: bool) -> int:
        if not zone or (allowed and not problem):
            return 0
        return self._session.reasons.intern(Reason(NAME, Code.UNRESOLVABLE, problem or NOT_ALLOWED))


class RevocableScorer(RevocableNodes):
    """Scores open revocable nodes 100 for tasks that may be revoked."""

    def prepare(self, session: Session, task: Task) -> Score | None:
        """Return the scores for tasks of this kind."""
        if not self.any or not task.revocable_zone:
            return None
        lines = zip(self._zones, self._problems, strict=True)
        return ColumnRule(np.array([FULL_SCORE if zone and not problem else 0.0 for zone, problem in lines]))


# --- Budgets
# Source: Volcano tdm (`getMaxPodEvictNum`).

MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
WITHOUT_BUDGET: Final = 1
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


def evictable_count(jobs: SessionJobs, job: Job) -> int:
    """Return the number of evictable pods by the PodGroup's annotations: minAvailable goes before maxUnavailable;
    without either, one pod.
    """
    annotations, counts, row = job.pod_group.annotations, jobs.counts, job.row
    running, total = int(counts[TaskStatus.RUNNING][row]), len(job.tasks)
    least = annotations.get(MIN_AVAILABLE)
    if least is None and annotations.get(MAX_UNAVAILABLE):
        ended = int(counts[TaskStatus.SUCCEEDED][row] + counts[TaskStatus.FAILED][row])
        missing = total - ended - running
        return max(amount_of(annotations[MAX_UNAVAILABLE], total) - missing, 0)
    if least:
        spare = running - amount_of(least, total)
        # Fewer run than must: getMaxPodEvictNum then allows one pod all the same.
        return spare if spare >= 0 else WITHOUT_BUDGET
    return WITHOUT_BUDGET


def amount_of(text: str, total: int) -> int:
    """Return a number, or a percentage of `total` rounded up; 0 for any other value."""
    if _INTEGER.fullmatch(text):
        return int(text)
    if text.endswith("%") and _INTEGER.fullmatch(text[:-1]):
        # Rounded up in whole numbers: the floor of the negative, negated.
        return -(-int(text[:-1]) * total // 100)
    return 0


ZONE_PREFIX: Final = "tdm.revocable-zone."


def _window(value: object) -> str:
    text = value if isinstance(value, str) else ""
    parse_span(text)
    return text


ZONE: Final = Argument(
    f"{ZONE_PREFIX}*",
    ArgumentKind(
        "a window like 08:00-18:00 (Volcano reads no other form, whatever is documented; else the zone never opens)",
        _window,
    ),
    "",
    "When the zone of that name is open.",
    "never",
)
PERIOD: Final = Argument("tdm.evict.period", DURATION, 60.0, "How often pods are evicted from closed zones.", "1m")
DAY_S: Final = 86_400.0
LAST_EVICTION: Final = "last_eviction"  # in the carry: seconds since the epoch


class Tdm(BuiltInPlugin):
    """Opens and closes zones. A zone without an argument is closed. The clock is that of pumice's `timeZone`."""

    name = "tdm"
    says = "lets revocable tasks use zones of nodes at certain hours only"
    listens = ("JobOrder", "Predicate", "NodeOrder", "Preemptable", "Victim", "JobPipelined", "JobStarving")
    orders_by = OrderNumber("preemptable (1) or not (0):")
    arguments = (ZONE, PERIOD)
    vocabulary = Vocabulary((
        "volcano.sh/revocable-zone", "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable",
    ))  # fmt: skip

    def __init__(self, arguments: PluginArguments) -> None:
        self._spans = {k.replace(ZONE_PREFIX, "", 1): str(v) for k, v in sorted(arguments.items()) if ZONE_PREFIX in k}
        self._period_s = PERIOD.of(arguments)

    def on_session_open(self, session: Session) -> None:
        """Register filter, scorer, orders and victims; wake when a zone opens or closes."""
        self._session, self._zones = session, self._zones_at(session)
        self.on_session_renew(session)
        session.points.predicate.add(self.name, [RevocableFilter(session, self._zones)])
        session.points.node_order.add(self.name, [RevocableScorer(session, self._zones)])
        points = session.points
        points.preemptable.add(self.name, self.preemptable)
        points.victim_tasks.add(self.name, [self.victims])
        points.job_order.add(self.name, JobColumn(self._preemptable_jobs))
        points.job_pipelined.add(self.name, self.job_pipelined)
        points.job_starving.add(self.name, self.job_starving)

    def can_go_on(self, session: Session) -> bool:
        """Return whether the same zones are open."""
        before, self._zones = self._zones, self._zones_at(session)
        return all(self._zones.problem(zone) == before.problem(zone) for zone in self._spans)

    def on_session_renew(self, session: Session) -> None:
        """Recall the last eviction; wake when a zone opens or closes."""
        self._state: dict[str, float] = session.carry.plugins.setdefault(self.name, {})
        change = self._zones.next_change()
        # A session for a zone that opens on no node, or for no pod, would decide nothing.
        if change is not None and self._concerns_anybody():
            # Zones open and close at the same hours every day.
            session.wake(change, every_s=DAY_S)

    def on_session_close(self, session: Session) -> None:
        """Write nothing."""

    def _zones_at(self, session: Session) -> Zones:
        settings = session.config.pumice
        where, past_midnight = time_zone(settings.time_zone), "tdm-past-midnight" in settings.fix
        return Zones(self._spans, session.clock.now, time_zone=where, past_midnight=past_midnight)

    def _concerns_anybody(self) -> bool:
        """Return whether hours make a difference: there are nodes of zones, and pods that have not ended."""
        counts = self._session.jobs.counts
        over = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)
        live = any(any(line) for status, line in enumerate(counts) if status not in over)
        return live and any(spec.revocable_zone for spec in self._session.nodes.specs)

    def _preemptable_jobs(self) -> npt.NDArray[np.int8]:
        """Return keys of job order: jobs that may not be preempted first."""
        jobs = self._session.jobs
        column = np.zeros(len(jobs.readiness), dtype=np.int8)
        column[jobs.columns.order] = [job.pod_group.preemptable for job in jobs.in_order]
        return column

    def job_pipelined(self, job: Job) -> Vote:
        """Permit a job that its own count calls pipelined, and reject any other."""
        return Vote.PERMIT if self._session.jobs.is_pipelined(job) else Vote.REJECT

    def job_starving(self, job: Job) -> bool:
        """Return whether a job that may not be preempted has a pending task."""
        return not job.pod_group.preemptable and self._session.jobs.has_pending(job)

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """Return running preemptable tasks outside of zones, within each job's budget; none for a preemptable
        preemptor.
        """
        if preemptor.preemptable or preemptor.revocable_zone:
            return [], Vote.REJECT
        nodes, node_of = self._session.nodes, self._session.jobs.node
        fixed = [
            task
            for task in candidates
            if self._may_go(task) and node_of[task.row] >= 0 and not nodes.specs[node_of[task.row]].revocable_zone
        ]
        return self._within_budgets(fixed), Vote.PERMIT

    def victims(self, _: Sequence[Task]) -> list[Task]:
        """Return once a period the preemptable tasks on the nodes of closed zones, zone by zone, within each job's
        budget.
        """
        now = self._session.clock.now
        # Volcano keeps the time of the last eviction in a package variable; here it is in the carry.
        if self._state.get(LAST_EVICTION, -self._period_s) + self._period_s > now:
            self._session.wake(self._state[LAST_EVICTION] + self._period_s)
            return []
        victims: list[Task] = []
        for zone in sorted(self._spans):
            if self._zones.problem(zone):
                victims += self._within_budgets(self._on_nodes_of(zone))
        self._state[LAST_EVICTION] = now
        if victims:
            self._session.wake(now + self._period_s)
        return victims

    def _on_nodes_of(self, zone: str) -> list[Task]:
        nodes = self._session.nodes
        rows = (row for row, spec in enumerate(nodes.specs) if spec.revocable_zone == zone)
        return [task for row in rows for task in nodes.tasks_on(row) if self._may_go(task)]

    def _may_go(self, task: Task) -> bool:
        return task.preemptable and self._session.jobs.status[task.row] == TaskStatus.RUNNING

    def _within_budgets(self, tasks: Sequence[Task]) -> list[Task]:
        """Return the first tasks of each job, as many as its budget allows, jobs by "namespace/name"."""
        by_job: dict[str, list[Task]] = {}
        for task in tasks:
            by_job.setdefault(task.job, []).append(task)
        victims: list[Task] = []
        # Volcano walks a map here, in random order.
        for key in sorted(by_job):
            job = self._session.job_of(by_job[key][0])
            if job is not None:
                victims += by_job[key][: evictable_count(self._session.jobs, job)]
        return victims
