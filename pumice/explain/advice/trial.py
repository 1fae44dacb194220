"""Trying a change: the objects are changed, the view follows, the cycle is decided, and all is put back."""

from __future__ import annotations

import copy
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from core.cycle import close_session, open_session, run_action
from core.life.task import ALLOCATED_STATUSES, LABELS, TaskStatus
from core.state.volumes import volume_rules
from pumice.explain.advice.changes import Change, Identity, Object, identity_of
from pumice.explain.advice.deadline import Spent, TimedTrail, demand_time, while_time
from pumice.explain.watch import Subjects, Watched, watch_cycle
from pumice.oneshot.cycles import fill
from pumice.oneshot.expand import expanded
from pumice.oneshot.supposing import AskedOnce

if TYPE_CHECKING:
    from config.schema import SchedulerConfig
    from core.messages.decisions import CycleResult
    from core.state.snapshot import Snapshot
    from core.state.view import View
    from pumice.explain.scene import Scene

SEATED: Final = frozenset(LABELS[status] for status in (*ALLOCATED_STATUSES, TaskStatus.SUCCEEDED))
COMING: Final = SEATED | {LABELS[TaskStatus.PIPELINED]}
WAITING: Final = ("", "Pending")


class TrialResult(NamedTuple):
    """How far a job came, the further the greater: tasks that kept their places, tasks that found some at all (of a
    gang they may have been taken back), whether it is admitted, and less the pods that were evicted for it. `pods`: how
    many tasks it has.
    """

    kept: int
    found: int
    admitted: bool
    spared: int
    pods: int = 0


@dataclass(frozen=True, slots=True)
class Bench:
    """Where changes are tried. `objects` by identity, as the cycle saw them; `scene` has a view of its own. Whatever it
    does raises TimeOverError when the time is `spent`, and leaves all as it was.
    """

    scene: Scene
    objects: dict[Identity, Object]
    job: str
    spent: Spent

    @classmethod
    def of(cls, scene: Scene, job: str, spent: Spent) -> Bench:
        """On a view of its own, for the scene's is not to be changed."""
        demand_time(spent)
        given = scene.objects()
        own = replace(scene, view=fill(while_time(given, spent), scene.in_flight), ask=AskedOnce(scene.ask))
        return cls(own, {identity_of(obj): obj for obj in given}, job, spent)

    @property
    def view(self) -> View:
        """The view that follows the changes."""
        return self.scene.view

    def look(self, pods: Sequence[str]) -> Watched:
        """The cycle without any change, watched."""
        demand_time(self.spent)
        scene = self.scene
        asked = Subjects(frozenset(pods), frozenset([self.job]))
        return watch_cycle(self._snapshot(), scene.config, scene.clock, scene.carry, asked, scene.options, scene.ask())

    def attempt(self, *changes: Change) -> TrialResult:
        """The cycle with these changes."""
        demand_time(self.spent)
        config = self.scene.config
        for change in changes:
            if change.config is not None:
                config = change.config(config)
        with self._changed(changes):
            return self._decide(config)

    def _snapshot(self) -> Snapshot:
        ignored = self.scene.options.ignored_provisioners if self.scene.options else ()
        return self.view.snapshot(volume_rules(self.scene.config, ignored))

    def _decide(self, config: SchedulerConfig) -> TrialResult:
        scene, trail = self.scene, TimedTrail(self.job, self.spent)
        session = open_session(
            self._snapshot(),
            config,
            scene.clock,
            scene.carry,
            scene.options,
            report=True,
            trail=trail,
            ask=scene.ask(),
        )
        for action in config.actions:
            run_action(session, action)
            demand_time(self.spent)
        result = close_session(session)
        counts = result.report.task_status.get(self.job, {})
        coming, needed = _count(counts, COMING), self.view.jobs.by_key[self.job].pod_group.min_member
        # preempt and reclaim leave promises to a gang that cannot start with them
        kept = coming if coming >= needed else _count(counts, SEATED)
        found = max([coming, *(_count(ended.tasks, COMING) for ended in trail.of_job(self.job))])
        admitted = result.report.phases.get(self.job, "") not in WAITING
        return TrialResult(kept, found, admitted, -_evicted_for(result, self.job, self.view), sum(counts.values()))

    @contextmanager
    def _changed(self, changes: Sequence[Change]) -> Generator[None]:
        after: dict[Identity, Object] = {}
        for edit in (edit for change in changes for edit in change.edits):
            obj = after.get(edit.who)
            if obj is None:
                obj = after[edit.who] = copy.deepcopy(self.objects.get(edit.who) or _blank(*edit.who))
            edit.make(obj)
        if any(change.remade for change in changes):
            after = self._remade(after)
        try:
            for who, obj in after.items():
                self.view.apply("MODIFIED" if who in self.objects else "ADDED", obj)
            yield
        finally:
            for who, obj in reversed(after.items()):
                before = self.objects.get(who)
                self.view.apply("DELETED" if before is None else "MODIFIED", before or obj)

    def _remade(self, after: dict[Identity, Object]) -> dict[Identity, Object]:
        """With what controllers make of the objects after the change."""
        grown = expanded(list({**self.objects, **after}.values()), self.scene.clock.now).objects
        made = {identity_of(obj): obj for obj in grown}
        return {**after, **{who: obj for who, obj in made.items() if self.objects.get(who) is not obj}}


def _evicted_for(result: CycleResult, job: str, view: View) -> int:
    """Pods that go to make room for the job."""
    preemptors = {task.key for task in view.jobs.by_key[job].tasks.values()} | {job}
    return sum(evict.preemptor in preemptors for evict in result.evicts)


def _blank(kind: str, namespace: str, name: str) -> Object:
    return {"kind": kind, "metadata": {"name": name, **({"namespace": namespace} if namespace else {})}}


def _count(counts: dict[str, int], labels: frozenset[str]) -> int:
    return sum(number for label, number in counts.items() if label in labels)
