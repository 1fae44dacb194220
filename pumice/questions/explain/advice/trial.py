# SPDX-License-Identifier: Apache-2.0
"""Trials of changes: the objects are changed, the view follows, the cycle is decided, and everything is restored."""

from __future__ import annotations

import copy
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from pumice.cluster.api.kinds import MAKERS
from pumice.cluster.controllers.job_keys import TASK_SPEC
from pumice.cluster.controllers.jobs.life import Action
from pumice.cluster.controllers.jobs.policies import POD_EVICTED, JobTrigger, resolve
from pumice.core.cycle import Trail, close_session, open_session, run_action
from pumice.core.life.task import ALLOCATED_STATUSES, LABELS, TaskStatus
from pumice.core.messages.decisions import Evict
from pumice.core.objects.metadata import Object, owners_of, section, text_map
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.state.volumes import volume_rules
from pumice.questions.explain.advice.changes import Change, Identity, identity_of
from pumice.questions.explain.watch import Subjects, Watched, watch_cycle
from pumice.questions.oneshot.between import next_objects, object_key
from pumice.questions.oneshot.cycles import assume, fill
from pumice.questions.oneshot.expand import expanded
from pumice.questions.oneshot.identity import stored_as
from pumice.questions.oneshot.supposing import AskedOnce
from pumice.work import OBJECT, WorkBudget, WorkOverError, of_cycle, of_step

if TYPE_CHECKING:
    from pumice.config.schema import SchedulerConfig
    from pumice.core.messages.decisions import CycleResult
    from pumice.core.objects.pod import Task
    from pumice.core.session.trail.records import Ending
    from pumice.core.state.jobs import Job
    from pumice.core.state.snapshot import Snapshot
    from pumice.core.state.view import View
    from pumice.questions.explain.scene import Scene

# --- The deadline

T = TypeVar("T")
Spent = WorkBudget
TimeOverError = WorkOverError


def budget(seconds: float) -> WorkBudget:
    """Return the work that so many seconds stand for."""
    return WorkBudget.of_seconds(seconds)


def demand_time(spent: Spent) -> None:
    """Check that time is left. Raises TimeOverError."""
    spent.demand()


def while_time(items: Iterable[T], spent: Spent) -> Iterator[T]:
    """Yield one object after the other; each costs a reading. Raises TimeOverError before one that the budget
    does not cover.
    """
    for item in items:
        spent.demand(OBJECT)
        yield item


class TimedTrail(Trail):
    """The trail of one job in a cycle that is broken off (TimeOverError) when the work is over: at the next job or task
    that an action ends for. `nodes`: their number.
    """

    def __init__(self, job: str, spent: Spent, nodes: int) -> None:
        super().__init__((), frozenset([job]))
        self._spent, self._step = spent, of_step(nodes)

    def job_ended(self, job: Job, ending: Ending, detail: str = "", domain: str = "") -> None:
        """Note that the action is done with the job for now, or with one HyperNode for it."""
        self._spent.demand(self._step)
        super().job_ended(job, ending, detail, domain)

    def task_ended(self, task: Task, ending: Ending, detail: str = "", node: int = -1) -> None:
        """Note that the action is done with the task, or with one node for it."""
        self._spent.demand(self._step)
        super().task_ended(task, ending, detail, node)


# --- Replacements of pods

AGAIN: Final = (Action.SYNC_JOB, Action.RESTART_POD)
OWNED: Final = ("Pod", "PodGroup")


def made_again(objects: Mapping[Identity, Object], gone: Iterable[Object], now: float) -> dict[Identity, Object]:
    """Return pods that the owners of those `gone` make again, as of `now` (seconds since the epoch), and the changes
    that follow. Pods of others are ignored by their controllers, and not read.
    """
    owners = {uid for pod in gone for uid in _controllers(pod)}
    if not owners:
        return {}
    near = [obj for obj in objects.values() if around(obj, owners)]
    known = {id(obj) for obj in near}
    return {identity_of(obj): obj for obj in expanded(near, now).objects if id(obj) not in known}


def with_policies(objects: Mapping[Identity, Object], gone: Iterable[Object]) -> set[str]:
    """Return the Volcano Jobs ("namespace/name") that do more about an eviction than to make the pod again."""
    owned = [(pod, uid) for pod in gone for uid in _controllers(pod)]
    uids = {uid for _, uid in owned}
    jobs = {uid: obj for obj in objects.values() if (uid := obj["metadata"].get("uid")) in uids and _is_job(obj)}
    found = set[str]()
    for pod, uid in owned:
        task = text_map(pod["metadata"].get("annotations")).get(TASK_SPEC, "")
        if uid in jobs and resolve(jobs[uid], JobTrigger(POD_EVICTED, task=task)).action not in AGAIN:
            found.add(object_key(jobs[uid]))
    return found


def _is_job(obj: Object) -> bool:
    return stored_as(obj) == "Job"


def around(obj: Object, owners: set[str]) -> bool:
    """Return whether an object counts for the owners of these uids: they, objects they own, and objects without an
    owner."""
    if obj["kind"] in OWNED:
        return not owners.isdisjoint(_controllers(obj))
    return stored_as(obj) not in MAKERS or section(obj, "metadata").get("uid") in owners


def _controllers(obj: Object) -> list[str]:
    return [each["uid"] for each in owners_of(obj) if each.get("controller")]


SEATED: Final = frozenset(LABELS[status] for status in (*ALLOCATED_STATUSES, TaskStatus.SUCCEEDED))
PIPELINED: Final = LABELS[TaskStatus.PIPELINED]
COMING: Final = SEATED | {PIPELINED}
WAITING: Final = ("", "Pending")
LATER: Final = 3
"""Number of further cycles, in which promised room may become free."""
Changed = dict[Identity, Object | None]


class TrialResult(NamedTuple):
    """Progress of a job, in the order of comparison: tasks that kept their places, tasks that found some at all (a gang
    may have lost them again), whether it is admitted, and, negative, the pods that were evicted for it. `pods`: its
    number of tasks.
    """

    kept: int
    found: int
    admitted: bool
    spared: int
    pods: int = 0


class TrialMoment(NamedTuple):
    """Moment at which a cycle is decided, and its input."""

    objects: Mapping[Identity, Object]
    clock: CycleClock
    carry: Carry

    def next_clock(self) -> CycleClock:
        """Return the clock of the next cycle; the time stands still."""
        return replace(self.clock, cycle=self.clock.cycle + 1)


@dataclass(frozen=True, slots=True)
class Bench:
    """Bench on which changes are tried. `objects` by identity, as the cycle saw them; `scene` has a view of its own;
    `untold`: Jobs whose policies for evictions were not followed. Every method raises TimeOverError when the time is
    `spent`, and restores the state.
    """

    scene: Scene
    objects: dict[Identity, Object]
    job: str
    spent: Spent
    untold: set[str] = field(default_factory=set[str])

    @classmethod
    def of(cls, scene: Scene, job: str, spent: Spent) -> Bench:
        """Make a bench on a view of its own, for the scene's is not to be changed."""
        demand_time(spent)
        given = scene.objects()
        own = replace(scene, view=fill(while_time(given, spent), scene.in_flight), ask=AskedOnce(scene.ask))
        return cls(own, {identity_of(obj): obj for obj in given}, job, spent)

    @property
    def view(self) -> View:
        """Return the view that follows the changes."""
        return self.scene.view

    def waiting(self) -> list[Task]:
        """Return the job's pods that wait, by uid."""
        status = self.view.tasks.status
        tasks = self.view.jobs.by_key[self.job].in_uid_order()
        return [task for task in tasks if status[task.row] == TaskStatus.PENDING]

    def pod_group(self) -> Object:
        """Return the job's PodGroup."""
        named = (obj for who, obj in self.objects.items() if who[0] == "PodGroup" and _key(who) == self.job)
        return next(named)

    def following(self, changes: Sequence[Change]) -> Bench:
        """Return another bench with these changes to objects."""
        objects = [*{**self.objects, **self.after(changes)}.values()]
        return self.elsewhere(replace(self.scene, recorded=None, objects=lambda: objects))

    def elsewhere(self, scene: Scene) -> Bench:
        """Return another for the same job, in that scene."""
        return replace(Bench.of(scene, self.job, self.spent), untold=self.untold)

    def look(self, pods: Sequence[str]) -> Watched:
        """Return the cycle without any change, watched."""
        scene = self.scene
        self._charge_cycle()
        asked = Subjects(frozenset(pods), frozenset([self.job]))
        return watch_cycle(
            self.view, self._snapshot(), scene.config, scene.clock, scene.carry, asked, scene.options, scene.ask()
        )

    def attempt(self, *changes: Change) -> TrialResult:
        """Return the cycle with these changes, and later ones in which its pipelined tasks get their room."""
        demand_time(self.spent)
        config = self.scene.config
        for change in changes:
            if change.config is not None:
                config = change.config(config)
        changed = self.after(changes)
        with self._put(self.objects, changed):
            return self._decide(
                TrialMoment({**self.objects, **changed}, self.scene.clock, self.scene.carry), config, LATER
            )

    def _charge_cycle(self) -> None:
        self.spent.demand(of_cycle(self.view.nodes.count, len(self.view.tasks.by_key)))

    def _snapshot(self) -> Snapshot:
        ignored = self.scene.options.ignored_provisioners if self.scene.options else ()
        return self.view.snapshot(volume_rules(self.scene.config, ignored))

    def _decide(self, now: TrialMoment, config: SchedulerConfig, later: int) -> TrialResult:
        """Decide: pipelined room counts when its tasks have it, at most so many cycles `later`, after its holders have
        gone. Where no pod leaves, a pipelined task does not count.
        """
        trail = TimedTrail(self.job, self.spent, self.view.nodes.count)
        self._charge_cycle()
        result = self._cycle(now, config, trail)
        counts = result.report.task_status.get(self.job, {})
        seated, pods = _count(counts, SEATED), sum(counts.values())
        evicted = _evicted_for(result, self.job, self.view)
        admitted = result.report.phases.get(self.job, "") not in WAITING
        promised = counts.get(PIPELINED, 0) > 0
        after = self._carried_out(now, result) if promised and later else {}
        if not any(obj is None for obj in after.values()):
            reached = SEATED if promised else COMING
            found = max([seated, *(_count(ended.tasks, reached) for ended in trail.of_job(self.job))])
            return TrialResult(seated, found, admitted, -evicted, pods)
        left, gone = _with(now.objects, after), [now.objects[who] for who, obj in after.items() if obj is None]
        again = made_again(left, gone, now.clock.now)
        self.untold.update(with_policies(left, gone))
        then = TrialMoment({**left, **again}, now.next_clock(), Carry.from_dict(result.carry))
        with self._put(now.objects, after), self._put(left, again):
            end = self._decide(then, config, later - 1)
        return TrialResult(end.kept, max(seated, end.found), admitted, end.spared - evicted, pods)

    def _cycle(self, now: TrialMoment, config: SchedulerConfig, trail: TimedTrail) -> CycleResult:
        session = open_session(
            self._snapshot(),
            config,
            now.clock,
            now.carry,
            self.scene.options,
            report=True,
            trail=trail,
            ask=self.scene.ask(),
        )
        for action in config.actions:
            run_action(session, action)
            demand_time(self.spent)
        return close_session(session)

    def _carried_out(self, now: TrialMoment, result: CycleResult) -> Changed:
        """Return the objects after the cycle's decisions; None for deleted ones."""
        going = {("Pod", one.namespace, one.name) for one in self.scene.in_flight if isinstance(one, Evict)}
        given = [obj for who, obj in now.objects.items() if who not in going]
        remaining = {identity_of(obj): obj for obj in next_objects(given, result, now.clock.now)}
        gone: Changed = dict.fromkeys(who for who in now.objects if who not in remaining)
        return gone | {who: obj for who, obj in remaining.items() if now.objects.get(who) is not obj}

    def after(self, changes: Sequence[Change]) -> dict[Identity, Object]:
        """Return the objects after their changes, with those that controllers then make."""
        edited = self.edited(changes)
        return self._remade(edited) if any(change.remade for change in changes) else edited

    def edited(self, changes: Sequence[Change]) -> dict[Identity, Object]:
        """Return the objects that the changes edit, as they are afterwards."""
        after: dict[Identity, Object] = {}
        for edit in (edit for change in changes for edit in change.edits):
            obj = after.get(edit.who)
            if obj is None:
                obj = after[edit.who] = copy.deepcopy(self.objects.get(edit.who) or _blank(*edit.who))
            edit.make(obj)
        return after

    @contextmanager
    def _put(self, before: Mapping[Identity, Object], after: Mapping[Identity, Object | None]) -> Generator[None]:
        """Return the view with these objects."""
        try:
            for who, obj in after.items():
                self._see(before.get(who), obj)
            yield
        finally:
            for who, obj in reversed([*after.items()]):
                self._see(obj, before.get(who))
            assume(self.view, self.scene.in_flight)

    def _see(self, before: Object | None, after: Object | None) -> None:
        if after is not None:
            self.view.apply("ADDED" if before is None else "MODIFIED", after)
        elif before is not None:
            self.view.apply("DELETED", before)

    def _remade(self, after: dict[Identity, Object]) -> dict[Identity, Object]:
        """Add the objects that controllers make after the change."""
        grown = expanded(list({**self.objects, **after}.values()), self.scene.clock.now).objects
        made = {identity_of(obj): obj for obj in grown}
        return {**after, **{who: obj for who, obj in made.items() if self.objects.get(who) is not obj}}


def _evicted_for(result: CycleResult, job: str, view: View) -> int:
    """Return pods that go to make room for the job."""
    preemptors = {task.key for task in view.jobs.by_key[job].tasks.values()} | {job}
    return sum(evict.preemptor in preemptors for evict in result.evicts)


def _blank(kind: str, namespace: str, name: str) -> Object:
    return {"kind": kind, "metadata": {"name": name, **({"namespace": namespace} if namespace else {})}}


def _with(objects: Mapping[Identity, Object], after: Changed) -> dict[Identity, Object]:
    merged: Changed = {**objects, **after}
    return {who: obj for who, obj in merged.items() if obj is not None}


def _count(counts: dict[str, int], labels: frozenset[str]) -> int:
    return sum(number for label, number in counts.items() if label in labels)


def _key(who: Identity) -> str:
    return f"{who[1] or 'default'}/{who[2]}"
