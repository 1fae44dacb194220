# SPDX-License-Identifier: Apache-2.0
"""Trial of whether and when a job starts: a future is simulated only as far as needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from pumice.belonging import group_of, job_of, minimum_of, owner_of
from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.life import Life
from pumice.config.errors import nearest_keys
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.decisions import CycleResult
from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object, section
from pumice.core.session.trail.trail import NullTrail
from pumice.errors import InputError
from pumice.executors import died
from pumice.questions.whatif.changes import ForkChange, changed
from pumice.questions.whatif.naming import Belongings, belongings, running
from pumice.storage import codec
from pumice.work import CHANGE, MOMENT, WorkBudget, WorkOverError, of_cycle, of_step

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.trail.records import Ending
    from pumice.core.state.jobs import Job


class StartWatch:
    """Watches a job ("namespace/name") until its minimum of pods is on nodes, or all of them (`whole`)."""

    def __init__(self, job: str, *, whole: bool = False) -> None:
        self.job = job
        self.whole = whole
        self.seen: set[str] = set()
        self.groups: set[str] = set()
        self._minima: dict[str, int] = {}
        self._placed: defaultdict[str, set[str]] = defaultdict(set)
        self._waiting: defaultdict[str, set[str]] = defaultdict(set)
        self._owners: dict[str, str] = {}

    @property
    def started(self) -> bool:
        """Return whether a group of the job has its minimum of pods on nodes now, or all its pods."""
        placed = self._placed
        if self.whole and any(self._waiting[group] for group in self.groups):
            return False
        return any(len(placed[group]) >= self._minima.get(group, 1) for group in self.groups if placed[group])

    def note(self, mutation: Mutation, at: float) -> None:
        """Note a change of an object."""
        if mutation.kind == "PodGroup":
            self._group(mutation, codec.unpack(mutation.blob))
        elif mutation.kind == "Pod":
            self._pod(mutation, codec.unpack(mutation.blob))

    def _group(self, mutation: Mutation, group: Object) -> None:
        name = f"{mutation.namespace}/{mutation.name}"
        owner = owner_of(group)
        self._owners[name] = owner
        self._minima[name] = minimum_of(group)
        self.seen.add(owner)
        if self.job in (owner, name):
            self.groups.add(name)

    def _pod(self, mutation: Mutation, pod: Object) -> None:
        own = f"{mutation.namespace}/{mutation.name}"
        job, group = job_of(mutation.namespace, pod), group_of(mutation.namespace, pod) or own
        self.seen.add(job or self._owners.get(group, group))
        if self.job in (job, group, own):
            self.groups.add(group)
        gone = mutation.type == "DELETED" or section(pod, "status").get("phase") in ENDED_PHASES
        has_node = bool(section(pod, "spec").get("nodeName"))
        for pods, is_one in ((self._placed, has_node), (self._waiting, not has_node)):
            (pods[group].add if is_one and not gone else pods[group].discard)(own)


@dataclass
class StartQuestion:
    """The question whether the job starts within so many seconds. `tries` counts the trials, `told` is called for each.
    `whole`: it runs already, and starts in full when all its pods are on nodes.

    `work` is what may be done for what is tried; WorkOverError ends such a future in the middle. As it is, without any
    change, the job is followed to the end, so that the answer is not "does not start" when only the work ran out.
    `executor`: who lives through what will probably be asked; that counts when it is asked for, so that the answer is
    the same. `made`: the changes of each trial, by their words.
    """

    fork: Fork
    job: str
    within_s: float
    seed: int = 0
    whole: bool = False
    told: Callable[[str, float | None], None] = lambda words, starts_s: None
    tries: int = 0
    known: dict[tuple[str, ...], float | None] = field(default_factory=dict[tuple[str, ...], "float | None"])
    made: dict[tuple[str, ...], Sequence[ForkChange]] = field(
        default_factory=dict[tuple[str, ...], "Sequence[ForkChange]"]
    )
    executor: Executor | None = None
    work: WorkBudget = field(default_factory=lambda: WorkBudget(inf))
    _ahead: dict[tuple[str, ...], Future[LivedStart]] = field(
        default_factory=dict[tuple[str, ...], "Future[LivedStart]"]
    )

    def spent(self) -> bool:
        """Return whether the work is used up."""
        return self.work()

    def ahead(self, each: Iterable[ForkChange]) -> None:
        """Announce trials that come one by one, unless an earlier one suffices; an earlier announcement ends."""
        for future in self._ahead.values():
            future.cancel()
        self._ahead.clear()
        executor = self.executor
        if executor is None:
            return
        for change in each:
            words = (change.words,)
            if words not in self.known and words not in self._ahead:
                with suppress(InputError):
                    asked = changed(self.fork, [change]), self.job, self.within_s, self.seed
                    self._ahead[words] = executor.submit(lived_start, *asked, self.work.units, self.whole)

    def starts(self, *changes: ForkChange) -> float | None:
        """Return when the job starts with these changes, in seconds; None: it does not, or they cannot be made. Each
        set is tried once."""
        words = tuple(change.words for change in changes)
        if words not in self.known:
            self.tries += 1
            self.made[words] = changes
            try:
                self.known[words] = self._starts(words, changes)
            except InputError:
                self.known[words] = None
            self.told(" ".join(words), self.known[words])
        return self.known[words]

    def _starts(self, words: tuple[str, ...], changes: Sequence[ForkChange]) -> float | None:
        future = self._ahead.pop(words, None)
        if future is None or died(future.exception()):
            left = self.work.units - self.work.used if changes else inf
            found = self._lived(changed(self.fork, changes), left)
        else:
            found = future.result()
        self.work.add(found.used)
        if changes:
            self.work.demand()
        return found.starts_s

    def _lived(self, fork: Fork, units: float) -> LivedStart:
        """Simulate the future of a changed fork, which may begin later than the question; its start counts from this
        one.
        """
        late_s = round(fork.now - self.fork.now, 3)
        if late_s > self.within_s:
            return LivedStart(None, 0.0)
        found = lived_start(fork, self.job, self.within_s - late_s, self.seed, units, self.whole)
        return found if found.starts_s is None else found._replace(starts_s=round(found.starts_s + late_s, 3))


class CountedSteps(NullTrail):
    """Counts the steps of a future's cycles: jobs, tasks, and each node that is tried for a task, as preempt does with
    all of them for every waiting pod.
    """

    def __init__(self, work: WorkBudget, nodes: int) -> None:
        self._work, self._step = work, of_step(nodes)

    def job_ended(self, job: Job, ending: Ending, detail: str = "", domain: str = "") -> None:
        """Note that the action is done with the job for now."""
        self._work.demand(self._step)

    def task_ended(self, task: Task, ending: Ending, detail: str = "", node: int = -1) -> None:
        """Note that the action is done with the task, or with one node for it."""
        self._work.demand(self._step)


class LivedStart(NamedTuple):
    """When a job starts in a future, in seconds (None: not in time), and the work that it took to find out."""

    starts_s: float | None
    used: float


def starts_s(fork: Fork, job: str, within_s: float, seed: int = 0) -> float | None:
    """Return when the job has its minimum on nodes, in seconds; None: not within that time."""
    return lived_start(fork, job, within_s, seed).starts_s


def lived_start(
    fork: Fork, job: str, within_s: float, seed: int = 0, units: float = inf, whole: bool = False
) -> LivedStart:
    """Simulate the future until the job starts, in full if requested (`whole`), or the work reaches so many `units`."""
    watch, work = StartWatch(job, whole=whole), WorkBudget(units)
    at: list[float] = []
    nodes = sum(obj["kind"] == "Node" for obj in fork.objects)

    def note(mutation: Mutation, moment: float) -> None:
        work.demand(CHANGE)
        watch.note(mutation, moment)

    def decided(_result: CycleResult, _now: float) -> None:
        work.demand(of_cycle(nodes, len(fork.objects)))

    def advance(seconds: float) -> bool:
        work.demand(MOMENT)
        if watch.started:
            at.append(round(seconds, 3))
        return watch.started

    with suppress(WorkOverError):
        Life(fork, seed, note, decided, CountedSteps(work, nodes)).run(within_s, advance)
    return LivedStart(at[0] if at else None, work.used)


def runs_in_part(fork: Fork, job: str) -> bool:
    """Return whether the job has its minimum of pods on nodes already, and others without a node."""
    one, objects = belongings(fork.objects).get(job, Belongings()), fork.objects
    pods = [pod for place in one.pods if section(pod := objects[place], "status").get("phase") not in ENDED_PHASES]
    minimum = min((minimum_of(objects[place]) for place in one.groups), default=1)
    return minimum <= len(running(objects, one)) < len(pods)


def known_job(fork: Fork, name: str) -> str:
    """Return the named job as "namespace/name". InputError with similar names for an unknown one."""
    whole = name if "/" in name else f"default/{name}"
    watch = StartWatch(whole)
    Life(fork, 0, watch.note, lambda result, now: None).run(fork.config.pumice.schedule_period_s * 3)
    if watch.groups:
        return whole
    near = nearest_keys(whole, watch.seen)
    hint = f"; near: {', '.join(near)}" if near else ""
    raise InputError(f"job {whole} does not exist{hint}", path="--until-starts")
