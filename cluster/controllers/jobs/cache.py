"""What the Job controller has seen: Jobs, their pods and PodGroups, queues, priority classes, commands.

What a change means to a Job is noted on it as a trigger, and the Job as one to look at (`dirty`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from pumice.cluster.controllers.jobs.life import FINISHED, Action, JobPhase, phase_of
from pumice.cluster.controllers.jobs.policies import JOB_UNKNOWN, JobTrigger
from pumice.cluster.controllers.jobs.state import (
    GroupView,
    JobKey,
    JobState,
    PodView,
    controlling_job,
    gone_trigger,
    pod_trigger,
    view_of,
)
from pumice.cluster.controllers.jobs.timers import TTL, JobTimers
from pumice.core.objects.metadata import Object, parse_time, section

_COMMANDS: Final = frozenset(str(action) for action in Action)


EXPIRE: Final = "aborted-jobs-expire"
ENDED_STAY_ENDED: Final = "ended-pods-are-not-evicted"


def no_fixes() -> Collection[str]:
    """Return no switch: the controllers decide as Volcano v1.15.1 does."""
    return ()


class JobCache:
    """Single writer of every `JobState` but for what the actions note on pods they delete."""

    def __init__(self, timers: JobTimers, fixes: Callable[[], Collection[str]] = no_fixes) -> None:
        self._fixes = fixes
        self.jobs: dict[JobKey, JobState] = {}
        self.queues: set[str] = set()
        self.priorities: dict[str, int] = {}
        self.priorities_at = 0
        self.commands: dict[JobKey, Object] = {}
        self.dirty: dict[JobKey, None] = {}
        self._pods: dict[JobKey, PodView] = {}
        self._group_jobs: dict[JobKey, JobKey] = {}
        self._timers = timers

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """An object is there, or is gone, as of `revision`."""
        match kind:
            case "Pod":
                self._pod_gone(obj, revision) if deleted else self._pod(obj, revision)
            case "Job":
                self._job_gone(obj) if deleted else self._job(obj, revision)
            case "PodGroup":
                self.group_gone(key_of(obj), revision) if deleted else self._group(obj, revision)
            case "Queue":
                self._queue(obj["metadata"]["name"], deleted=deleted)
            case "PriorityClass":
                self._priority_class(obj, revision, deleted=deleted)
            case "Command":
                self._command(obj, deleted=deleted)
            case _:
                pass

    def happened(self, state: JobState, trigger: JobTrigger) -> None:
        """Note it, and that the Job is to be looked at."""
        state.happened(trigger)
        if state.job is not None:
            self.dirty[state.key] = None

    def take_dirty(self) -> list[JobState]:
        """The Jobs to look at, in the order in which something happened to them."""
        dirty, self.dirty = self.dirty, {}
        return [self.jobs[key] for key in dirty if key in self.jobs]

    def _state(self, key: JobKey) -> JobState:
        state = self.jobs.get(key)
        if state is None:
            state = self.jobs[key] = JobState(key)
        return state

    def _job(self, job: Object, revision: int) -> None:
        state = self._state(key_of(job))
        if revision <= state.revision:
            return
        old, state.job, state.revision = state.job, job, revision
        phase = phase_of(section(job, "status"))
        if old is None or old["metadata"]["uid"] != job["metadata"]["uid"]:
            state.renewed()
            self._timers.forget(state.key)
        if old is None or old["spec"] != job["spec"] or phase_of(section(old, "status")) != phase:
            self.happened(state, JobTrigger())
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        finished = phase in FINISHED or (phase is JobPhase.ABORTED and EXPIRE in self._fixes())
        if ttl is not None and finished:
            self._timers.set(TTL, state.key, parse_time(job["status"]["state"].get("lastTransitionTime")) + ttl)
        else:
            self._timers.drop(TTL, state.key)

    def _job_gone(self, job: Object) -> None:
        state = self._state(key_of(job))
        state.job, state.group = None, None
        state.triggers.clear()
        self.dirty.pop(state.key, None)
        self._timers.forget(state.key)
        self._forget_if_empty(state)

    def _pod(self, pod: Object, revision: int) -> None:
        where = key_of(pod)
        old = self._pods.get(where)
        if old is not None and revision <= old.revision:
            return
        new = view_of(pod, revision)
        if new is None:
            return
        if old is not None and old.uid != new.uid:
            old = None
        # how it was when it was told to go: on its way out it comes to a last phase like any other
        new.ended = new.ended if not new.deleting or old is None else old.ended
        new.deleting = new.deleting or (old is not None and old.deleting)
        state = self._state(new.job)
        self._pods[where] = new
        state.pods.setdefault(new.task, {})[new.name] = new
        self.happened(state, pod_trigger(state, old, new))

    def _pod_gone(self, pod: Object, revision: int) -> None:
        old = self._pods.get(key_of(pod))
        if old is None or revision <= old.revision:
            return
        del self._pods[key_of(pod)]
        state = self._state(old.job)
        del state.pods[old.task][old.name]
        if not state.pods[old.task]:
            del state.pods[old.task]
        spared = old.ended and ENDED_STAY_ENDED in self._fixes()
        self.happened(state, JobTrigger() if spared else gone_trigger(old))
        self._forget_if_empty(state)

    def _forget_if_empty(self, state: JobState) -> None:
        if state.job is None and not state.pods:
            self.jobs.pop(state.key, None)

    def _group(self, group: Object, revision: int) -> None:
        meta = group["metadata"]
        owner = controlling_job(meta)
        if owner is None:
            return
        state = self._state((meta["namespace"], owner["name"]))
        known = state.group
        if revision <= max(state.group_gone_at, known.revision if known is not None else 0):
            return
        phase: str = section(group, "status").get("phase") or ""
        state.group = GroupView(meta["name"], phase, group["spec"], revision)
        self._group_jobs[key_of(group)] = state.key
        if known is None or phase != known.phase:
            self.happened(state, JobTrigger(JOB_UNKNOWN) if phase == "Unknown" else JobTrigger())

    def group_gone(self, where: JobKey, revision: int) -> None:
        """A PodGroup has been removed."""
        job = self._group_jobs.get(where)
        state = self.jobs.get(job) if job is not None else None
        if state is None or state.group is None or revision <= state.group.revision:
            return
        del self._group_jobs[where]
        state.group, state.group_gone_at = None, revision
        self.happened(state, JobTrigger())

    def _queue(self, name: str, *, deleted: bool) -> None:
        if deleted:
            self.queues.discard(name)
        elif name not in self.queues:
            self.queues.add(name)
            for state in self.jobs.values():
                if state.job is not None and state.job["spec"].get("queue") == name:
                    self.happened(state, JobTrigger())

    def _priority_class(self, found: Object, revision: int, *, deleted: bool) -> None:
        self.priorities.pop(found["metadata"]["name"], None)
        if not deleted:
            self.priorities[found["metadata"]["name"]] = found.get("value", 0)
        self.priorities_at = max(self.priorities_at + 1, revision)

    def _command(self, command: Object, *, deleted: bool) -> None:
        if deleted:
            self.commands.pop(key_of(command), None)
        elif section(command, "target").get("kind") == "Job" and command.get("action") in _COMMANDS:
            self.commands[key_of(command)] = command


def key_of(obj: Object) -> JobKey:
    """Namespace and name."""
    return obj["metadata"].get("namespace") or "", obj["metadata"]["name"]
