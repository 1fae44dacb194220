# SPDX-License-Identifier: Apache-2.0
"""Data of a report about one run: its measures, and beside them pods on nodes, evictions, and why pods waited."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pumice.core.messages.decisions import Decision, Evict
from pumice.core.messages.events import ConfigLoaded, CycleRecord, Mutation
from pumice.core.objects.metadata import section
from pumice.questions.adviser.waiting_jobs import WaitRow
from pumice.questions.measures.beginning import beginning
from pumice.questions.measures.lives import Listener, Lives
from pumice.questions.measures.measures import Measuring
from pumice.questions.measures.over_time import Steps
from pumice.storage import codec
from pumice.storage.journal import API, CONFIG, CYCLE, DECISION
from pumice.storage.records import read_as

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.questions.measures.jobs import JobRow
    from pumice.questions.measures.lives import GroupLife, PodLife
    from pumice.questions.measures.measures import Measures
    from pumice.questions.measures.over_time import Grid
    from pumice.questions.report.cycle_reasons import CycleReasons
    from pumice.storage.journal import Journal, Stored

NOT_LOOKED_AT: Final = "not looked at yet"
"""Instead of a reason, where no cycle gives one while a pod waited."""
UNSAID: Final = "nothing was said"
"""Instead of a reason, where no cycle gives one while a PodGroup was not admitted."""


@dataclass(frozen=True, slots=True)
class PodSlice:
    """A pod on a node, in seconds after the beginning."""

    node: str
    pod: str
    queue: str
    begun: float
    ended: float
    evicted: bool


class Outside(NamedTuple):
    """A PodGroup that is not admitted: its job, why, and since when (seconds since the epoch)."""

    job: str
    why: str
    since: float


@dataclass
class RecordedRun:
    """One run. `evictions`: number by (victim's job, its preemptor, action); `reasons`: waiting pods, over time;
    `waited_for`: seconds of pods, by job and reason, from the admission of their PodGroup on; `admitted_for`: seconds
    before it, by job and reason; `standing`: jobs that wait in the newest cycle, as `waits_at_the_end` returns them.
    """

    name: str
    measures: Measures
    jobs: list[JobRow]
    slices: list[PodSlice]
    evictions: Counter[tuple[str, str, str]]
    reasons: dict[str, list[float]]
    waiting: Counter[str]
    waited_for: Mapping[str, Mapping[str, float]]
    cycles: int
    configurations: list[str]
    admitted_for: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, dict[str, float]])
    standing: list[WaitRow] = field(default_factory=list[WaitRow])

    @property
    def loops(self) -> list[tuple[str, str, int, int]]:
        """Return pairs of jobs that evict each other, and how often in either direction."""
        by_pair: Counter[tuple[str, str]] = Counter()
        for (victim, winner, _), count in self.evictions.items():
            by_pair[victim, winner] += count
        return [
            (one, other, count, by_pair[other, one])
            for (one, other), count in sorted(by_pair.items())
            if one < other and by_pair[other, one]
        ]


def _nobody() -> defaultdict[str, dict[str, float]]:
    return defaultdict(dict[str, float])


@dataclass
class Beside(Listener):
    """Reads from lives what measures do not keep."""

    grid: Grid
    slices: list[PodSlice] = field(default_factory=list[PodSlice])
    jobs_of: dict[str, str] = field(default_factory=dict[str, str])
    waiting: dict[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])
    waited_for: defaultdict[str, dict[str, float]] = field(default_factory=_nobody)
    admitted_for: defaultdict[str, dict[str, float]] = field(default_factory=_nobody)
    outside: dict[str, Outside] = field(default_factory=dict[str, "Outside"])
    let_in: dict[str, float] = field(default_factory=dict[str, float])
    cycles: deque[CycleReasons] = field(default_factory=deque["CycleReasons"])
    groups_of: dict[str, str] = field(default_factory=dict[str, str])
    now: float = 0.0
    reasons: defaultdict[str, Steps] = field(init=False)
    open: dict[str, PodLife] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self.reasons = defaultdict(lambda: Steps(self.grid))

    def pod_created(self, pod: PodLife) -> None:
        """Remember the pod's job, since decisions name pods."""
        self.jobs_of[pod.full_name], self.groups_of[pod.full_name] = pod.job, pod.group

    def pod_moved(self, pod: PodLife, job: str, queue: str) -> None:
        """Note that a pod has another job than it first seemed."""
        self.jobs_of[pod.full_name], self.groups_of[pod.full_name] = pod.job, pod.group

    def group(self, group: GroupLife) -> None:
        """Note a PodGroup: until it is admitted its job waits for that."""
        name = f"{group.namespace}/{group.name}"
        if group.admitted is None:
            self.outside.setdefault(name, Outside(group.job, UNSAID, group.created))
        elif name not in self.let_in:
            self._comes_in(name, group.admitted)

    def group_gone(self, group: GroupLife) -> None:
        """Note a deleted PodGroup: one of that name again waits anew."""
        name = f"{group.namespace}/{group.name}"
        self._comes_in(name, self.now)
        self.let_in.pop(name, None)

    def _comes_in(self, group: str, at: float) -> None:
        self.let_in[group] = at
        if (outside := self.outside.pop(group, None)) is not None:
            self._admission(outside, at)

    def _admission(self, outside: Outside, until: float) -> None:
        of = self.admitted_for[outside.job]
        of[outside.why] = of.get(outside.why, 0.0) + until - outside.since

    def reach(self, at: float) -> None:
        """Advance the time: the reasons of earlier cycles count."""
        while self.cycles and self.cycles[0].at < at:
            cycle = self.cycles.popleft()
            for pod in self.waiting.keys() & cycle.reasons.pods.keys():
                self.waits(pod, cycle.reasons.pods[pod].label, cycle.at)
            for group in self.outside.keys() & cycle.reasons.jobs.keys():
                self._refuses(group, cycle.reasons.jobs[group].label, cycle.at)

    def comes(self, pod: str, at: float) -> None:
        """Note a pod without a node: it waits for what the next cycle with reasons says."""
        if pod not in self.waiting:
            reason = self.cycles[0].reasons.pods.get(pod) if self.cycles else None
            self.waits(pod, NOT_LOOKED_AT if reason is None else reason.label, at)

    def _refuses(self, group: str, why: str, at: float) -> None:
        """Note the reason for which a PodGroup is not admitted."""
        outside = self.outside[group]
        if outside.why == why:
            return
        if outside.why != UNSAID:  # before the first cycle with reasons it waited for what that says
            self._admission(outside, at)
            outside = outside._replace(since=at)
        self.outside[group] = outside._replace(why=why)

    def pod_bound(self, pod: PodLife) -> None:
        """Note that a pod waits no more."""
        assert pod.bound is not None
        self.waits(pod.full_name, None, pod.bound)
        self.open[pod.uid] = pod

    def pod_ended(self, pod: PodLife) -> None:
        """Note that a pod's slice has ended."""
        assert pod.ended is not None
        self.waits(pod.full_name, None, pod.ended)
        if self.open.pop(pod.uid, None) is not None:
            self.draw(pod, pod.ended)

    def draw(self, pod: PodLife, ended: float) -> None:
        """Add a slice from the pod's binding to its end."""
        assert pod.bound is not None
        begun, ended = (round(at - self.grid.began, 1) for at in (pod.bound, ended))
        self.slices.append(PodSlice(pod.node, pod.full_name, pod.queue, begun, ended, pod.evicted))

    def waits(self, pod: str, why: str | None, at: float) -> None:
        """Note that a pod waits from now on for that reason; None when it does not wait."""
        before, since = self.waiting.get(pod, (None, at))
        if before == why:
            return
        if before is not None:
            self.reasons[before].add(-1, at)
            self._count(pod, before, since, at)
            del self.waiting[pod]
        if why is not None:
            self.reasons[why].add(1, at)
            self.waiting[pod] = (why, at)

    def _count(self, pod: str, why: str, since: float, until: float) -> None:
        """Count a wait: before its PodGroup is admitted a pod waits for nothing of its own."""
        group = self.groups_of.get(pod, "")
        if group not in self.outside and (seconds := until - max(since, self.let_in.get(group, since))) > 0:
            of = self.waited_for[self.jobs_of.get(pod, "")]
            of[why] = of.get(why, 0.0) + seconds

    def still_waiting(self, until: float) -> Counter[str]:
        """Return pods by reason, whose waits are counted up to then."""
        for pod, (why, since) in self.waiting.items():
            self._count(pod, why, since, until)
        for outside in self.outside.values():
            self._admission(outside, until)
        return Counter(why for why, _ in self.waiting.values())


async def recorded(journal: Journal, name: str, cycle_reasons: Sequence[CycleReasons] = ()) -> RecordedRun:
    """Read a whole journal; `cycle_reasons`: its cycles with reasons of jobs and pods. Raises DamagedError."""
    begun = await beginning(journal)
    rows: list[JobRow] = []
    measuring = Measuring(begun.at, rows.append)
    watched = Beside(measuring.grid, cycles=deque(cycle_reasons))
    lives = Lives((*measuring.listeners(), watched))
    evictions: Counter[tuple[str, str, str]] = Counter()
    cycles, configurations = 0, list[str]()

    def record(stored: Stored) -> None:
        nonlocal cycles
        watched.now = stored.at
        watched.reach(stored.at)
        lives.follow(stored)
        if stored.kind == API:
            _waits(stored, watched)
        elif stored.kind == DECISION:
            _evicts(stored, watched, evictions)
        elif stored.kind == CYCLE:
            cycles = read_as(stored, CycleRecord).cycle
        elif stored.kind == CONFIG and not (loaded := read_as(stored, ConfigLoaded)).error:
            configurations.append(loaded.text)

    until = round(await begun.through(journal, lives, record), 3)
    watched.reach(inf)
    for pod in watched.open.values():
        watched.draw(pod, until)
    reasons = {why: steps.means(until) for why, steps in sorted(watched.reasons.items())}
    found = measuring.end(until)
    return RecordedRun(
        name,
        found,
        rows,
        watched.slices,
        evictions,
        reasons,
        watched.still_waiting(until),
        watched.waited_for,
        cycles,
        configurations,
        watched.admitted_for,
    )


def _waits(stored: Stored, watched: Beside) -> None:
    mutation = read_as(stored, Mutation)
    if mutation.kind != "Pod" or mutation.type == "DELETED":
        return
    pod = codec.unpack(mutation.blob)
    spec, status = section(pod, "spec"), section(pod, "status")
    if not spec.get("nodeName") and status.get("phase") in (None, "", "Pending"):
        watched.comes(f"{mutation.namespace}/{mutation.name}", stored.at)


def _evicts(stored: Stored, watched: Beside, evictions: Counter[tuple[str, str, str]]) -> None:
    decision = read_as(stored, Decision)
    if isinstance(decision, Evict):
        victim = watched.jobs_of.get(f"{decision.namespace}/{decision.name}", decision.job)
        winner = watched.jobs_of.get(decision.preemptor, decision.preemptor)
        evictions[victim, winner, decision.action] += 1
