"""The Job controller as a pure machine: what happened to a Job becomes an action, the action becomes requests.

One action a Job and step: what else has happened waits for its answers, so that every decision is made on what the one
before it has done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from actors.controllers import job_keys as keys
from actors.controllers.job_actions import USER, kill, sync
from actors.controllers.job_events import event
from actors.controllers.job_life import FINISHED, REACTIONS, TARGETED, Action, Do, phase_of
from actors.controllers.job_policies import (
    COMMAND_ISSUED,
    JOB_UNKNOWN,
    POD_EVICTED,
    POD_FAILED,
    POD_PENDING,
    POD_RUNNING,
    Resolved,
    Trigger,
    resolve,
)
from actors.controllers.job_state import (
    GroupView,
    JobKey,
    JobState,
    PodView,
    controlling_job,
    gone_trigger,
    pod_trigger,
    view_of,
)
from actors.timers import Timers
from core.messages.commands import ApiRequest, Create, Delete, UpdateStatus
from core.messages.replies import Accepted, ApiReply, Refused
from core.objects.metadata import parse_time
from storage.codec import pack, unpack

Object = dict[str, Any]
TimerKey = tuple[str, JobKey, str]
"""What for (ttl, retry, delay), the Job, the pod of a delayed action."""

MOST_FAILURES: Final = 15
"""Tries after which a Job whose pods or PodGroup the api refuses is terminated (Volcano's --max-requeue-num)."""

_BACKOFF_FIRST_S: Final = 0.005
_BACKOFF_MOST_S: Final = 1.0
_POD_EVENTS: Final = (POD_PENDING, POD_RUNNING, POD_FAILED, POD_EVICTED)


class JobMachine:
    """See `actors.reconciler.Machine`."""

    kinds = ("Queue", "PriorityClass", "Job", "PodGroup", "Pod", "Command")

    def __init__(self) -> None:
        self.jobs: dict[JobKey, JobState] = {}
        self._pods: dict[JobKey, PodView] = {}
        self._queues: set[str] = set()
        self._priorities: dict[str, int] = {}
        self._priorities_at = 0
        self._dirty: dict[JobKey, None] = {}
        self._timers: Timers[TimerKey] = Timers()
        self._delayed: dict[TimerKey, Resolved] = {}
        self._commands: dict[JobKey, Object] = {}

    # --- what changed

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """See `Machine`."""
        match kind:
            case "Pod":
                self._pod_gone(obj, revision) if deleted else self._pod(obj, revision)
            case "Job":
                self._job_gone(obj) if deleted else self._job(obj, revision)
            case "PodGroup":
                self._group(obj, revision, deleted=deleted)
            case "Queue":
                self._queue(obj["metadata"]["name"], deleted=deleted)
            case "PriorityClass":
                self._priority_class(obj, revision, deleted=deleted)
            case "Command":
                self._command(obj, deleted=deleted)
            case _:
                pass

    def _state(self, key: JobKey) -> JobState:
        state = self.jobs.get(key)
        if state is None:
            state = self.jobs[key] = JobState(key)
        return state

    def _happened(self, state: JobState, trigger: Trigger) -> None:
        state.happened(trigger)
        if state.job is not None:
            self._dirty[state.key] = None

    def _job(self, job: Object, revision: int) -> None:
        state = self._state(_key(job))
        if revision <= state.revision:
            return
        old, state.job, state.revision = state.job, job, revision
        if old is None or old["metadata"]["uid"] != job["metadata"]["uid"]:
            state.failures, state.wanted, state.announced_plugins = 0, None, False
            self._drop_delays(state.key)
        if old is None or old["spec"] != job["spec"] or phase_of(old.get("status") or {}) != _phase(job):
            self._happened(state, Trigger())
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is not None and _phase(job) in FINISHED:
            self._timers.set(("ttl", state.key, ""), parse_time(job["status"]["state"].get("lastTransitionTime")) + ttl)

    def _job_gone(self, job: Object) -> None:
        state = self._state(_key(job))
        state.job, state.group, state.wanted = None, None, None
        state.triggers.clear()
        self._dirty.pop(state.key, None)
        self._drop_delays(state.key)
        for purpose in ("ttl", "retry"):
            self._timers.cancel((purpose, state.key, ""))
        self._forget_if_empty(state)

    def _pod(self, pod: Object, revision: int) -> None:
        new = view_of(pod, revision)
        if new is None:
            return
        where = _key(pod)
        old = self._pods.get(where)
        if old is not None and revision <= old.revision:
            return
        new.deleting = new.deleting or (old is not None and old.uid == new.uid and old.deleting)
        state = self._state(new.job)
        self._pods[where] = new
        state.pods.setdefault(new.task, {})[new.name] = new
        self._happened(state, pod_trigger(state, old if old is not None and old.uid == new.uid else None, new))

    def _pod_gone(self, pod: Object, revision: int) -> None:
        old = self._pods.get(_key(pod))
        if old is None or revision <= old.revision:
            return
        del self._pods[_key(pod)]
        state = self._state(old.job)
        del state.pods[old.task][old.name]
        if not state.pods[old.task]:
            del state.pods[old.task]
        self._happened(state, gone_trigger(old))
        self._forget_if_empty(state)

    def _forget_if_empty(self, state: JobState) -> None:
        if state.job is None and not state.pods:
            self.jobs.pop(state.key, None)

    def _group(self, group: Object, revision: int, *, deleted: bool) -> None:
        meta = group["metadata"]
        owner = controlling_job(meta)
        key = (meta["namespace"], owner["name"]) if owner is not None else self._owner_of_group(_key(group))
        state = self.jobs.get(key) if key is not None else None
        if state is None:
            if not deleted and key is not None:  # its Job comes later in the list
                state = self._state(key)
            else:
                return
        if deleted:
            if state.group is not None and state.group.name == meta["name"] and revision > state.group.revision:
                state.group, state.group_gone_at = None, revision
                self._happened(state, Trigger())
            return
        if revision <= max(state.group_gone_at, state.group.revision if state.group else 0):
            return
        phase: str = (group.get("status") or {}).get("phase") or ""
        before = state.group.phase if state.group is not None else None
        state.group = GroupView(meta["name"], phase, group["spec"], revision)
        if phase != before:
            self._happened(state, Trigger(JOB_UNKNOWN) if phase == "Unknown" else Trigger())

    def _owner_of_group(self, where: JobKey) -> JobKey | None:
        found = (s.key for s in self.jobs.values() if s.group is not None and (s.key[0], s.group.name) == where)
        return next(found, None)

    def _queue(self, name: str, *, deleted: bool) -> None:
        if deleted:
            self._queues.discard(name)
        elif name not in self._queues:
            self._queues.add(name)
            for state in self.jobs.values():
                if state.job is not None and state.job["spec"].get("queue") == name:
                    self._happened(state, Trigger())

    def _priority_class(self, found: Object, revision: int, *, deleted: bool) -> None:
        self._priorities.pop(found["metadata"]["name"], None)
        if not deleted:
            self._priorities[found["metadata"]["name"]] = found.get("value", 0)
        self._priorities_at = max(self._priorities_at + 1, revision)

    def _command(self, command: Object, *, deleted: bool) -> None:
        if deleted:
            self._commands.pop(_key(command), None)
        elif (command.get("target") or {}).get("kind") == "Job" and command.get("action") in set(Action):
            self._commands[_key(command)] = command

    # --- what to do

    def step(self, now: float) -> Sequence[ApiRequest]:
        """See `Machine`."""
        requests: list[ApiRequest] = [
            Delete("Command", *key, uid=command["metadata"]["uid"], user=USER)
            for key, command in self._commands.items()
        ]
        for timer in self._timers.take_due(now):
            requests += self._rang(timer)
        dirty, self._dirty = self._dirty, {}
        for key in dirty:
            state = self.jobs.get(key)
            if state is not None and state.job is not None:
                requests += self._act(state, now)
        return requests

    def _rang(self, timer: TimerKey) -> list[ApiRequest]:
        purpose, key, _ = timer
        state = self.jobs.get(key)
        if state is None or state.job is None:
            self._delayed.pop(timer, None)
            return []
        if purpose == "ttl":
            return [Delete("Job", *key, uid=state.job["metadata"]["uid"], user=USER)]
        resolved = self._delayed.pop(timer, None)
        trigger = Trigger() if resolved is None else _ordered(resolved)
        self._happened(state, trigger)
        return []

    def _act(self, state: JobState, now: float) -> list[ApiRequest]:
        """The first thing that is more than a sync, else a sync; what is left waits for the next step."""
        resolved = Resolved(Action.SYNC_JOB, Trigger())
        while state.triggers:
            trigger = next(iter(state.triggers))
            del state.triggers[trigger]
            self._cancel_delays(state.key, trigger)
            found = resolve(state.job or {}, trigger)
            if found.delay_s > 0:
                self._delay(state.key, found, now)
            elif found.action is not Action.SYNC_JOB:
                resolved = found
                break
        if state.triggers:
            self._dirty[state.key] = None
        return self._carry_out(state, resolved, now)

    def _carry_out(self, state: JobState, resolved: Resolved, now: float) -> list[ApiRequest]:
        job = state.job
        if job is None or "deletionTimestamp" in job["metadata"]:
            return []
        reaction = REACTIONS[(_phase(job), resolved.action)]
        if resolved.action is not Action.SYNC_JOB:
            self._drop_alike(state.key, resolved)
        if reaction.do is not Do.SYNC:
            return kill(state, reaction, resolved, now)
        if job["spec"].get("queue") not in self._queues:
            return []  # the queue's coming is news
        return [*self._announce_plugins(state, job, now), *sync(state, reaction, self._known_priorities(), now)]

    def _known_priorities(self) -> tuple[int, dict[str, int]]:
        return self._priorities_at, self._priorities

    def _announce_plugins(self, state: JobState, job: Object, now: float) -> list[ApiRequest]:
        """Say once that what a Job's plugins would set up inside a cluster is not simulated."""
        simulated = sorted(set(job["spec"].get("plugins") or {}) - {"env"})
        if state.announced_plugins or not simulated or (job.get("status") or {}).get("state"):
            return []
        state.announced_plugins = True
        text = (
            f"plugins {', '.join(simulated)} are accepted; the files, keys, services and networks they set up "
            "in a real cluster are not simulated"
        )
        return [Create(pack(event(job, "PluginsSimulated", text, now)), user=USER)]

    # --- delays (policies with a timeout)

    def _delay(self, key: JobKey, resolved: Resolved, now: float) -> None:
        timer: TimerKey = ("delay", key, resolved.trigger.pod)
        known = self._delayed.get(timer)
        if known is None or known.action is not resolved.action:
            self._delayed[timer] = resolved
            self._timers.set(timer, now + resolved.delay_s)

    def _cancel_delays(self, key: JobKey, trigger: Trigger) -> None:
        """A pod that has moved on takes back what was to be done about where it was."""
        timer: TimerKey = ("delay", key, trigger.pod)
        delayed = self._delayed.get(timer)
        if delayed is None or trigger.event not in _POD_EVENTS or trigger.event == POD_PENDING:
            return
        waited = delayed.trigger.event
        same_pod = waited == POD_PENDING and trigger.pod_uid == delayed.trigger.pod_uid
        if same_pod or (waited in (POD_FAILED, POD_EVICTED) and trigger.event == POD_RUNNING):
            self._drop_delay(timer)

    def _drop_alike(self, key: JobKey, done: Resolved) -> None:
        """What was to be done later and has just been done."""
        for timer, delayed in list(self._delayed.items()):
            if timer[1] == key and _scope(delayed) == _scope(done):
                self._drop_delay(timer)

    def _drop_delays(self, key: JobKey) -> None:
        for timer in [timer for timer in self._delayed if timer[1] == key]:
            self._drop_delay(timer)

    def _drop_delay(self, timer: TimerKey) -> None:
        self._delayed.pop(timer, None)
        self._timers.cancel(timer)

    # --- answers

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:
        """See `Machine`. What was written is known from the answer, before the watch brings it."""
        if isinstance(reply, Accepted):
            self._accepted(request, reply)
        elif isinstance(reply, Refused) and isinstance(request, Create) and reply.reason != "AlreadyExists":
            self._creation_refused(unpack(request.blob), reply, now)

    def _accepted(self, request: ApiRequest, reply: Accepted) -> None:
        match request:
            case Create() | UpdateStatus():
                obj = unpack(reply.blob)
                if obj["kind"] in ("Pod", "PodGroup", "Job"):
                    self.observe(obj["kind"], obj, int(obj["metadata"]["resourceVersion"]))
                state = self.jobs.get(_key(obj)) if obj["kind"] == "Job" else None
                if state is not None and phase_of(obj.get("status") or {}) == "Running":
                    state.failures = 0
            case Delete(kind="PodGroup"):
                key = self._owner_of_group((request.namespace, request.name))
                if key is not None:
                    self.jobs[key].group = None
                    self.jobs[key].group_gone_at = reply.revision
            case Delete(kind="Command"):
                self._issue(self._commands.pop((request.namespace, request.name), None))
            case _:
                pass

    def _issue(self, command: Object | None) -> None:
        if command is None:
            return
        state = self.jobs.get((command["metadata"]["namespace"], command["target"]["name"]))
        if state is not None:
            self._happened(state, Trigger(COMMAND_ISSUED, command["action"]))

    def _creation_refused(self, obj: Object, reply: Refused, now: float) -> None:
        """Try again later and later; give the Job up after too many times."""
        owner = controlling_job(obj["metadata"])
        state = self.jobs.get((obj["metadata"].get("namespace", ""), owner["name"])) if owner is not None else None
        if state is None or state.job is None or ("retry", state.key, "") in self._timers:
            return
        state.failures += 1
        if state.failures > MOST_FAILURES:
            state.failures = 0
            self._happened(state, Trigger(COMMAND_ISSUED, Action.TERMINATE_JOB))
            return
        delay_s = min(_BACKOFF_FIRST_S * 2 ** (state.failures - 1), _BACKOFF_MOST_S)
        self._timers.set(("retry", state.key, ""), now + delay_s)

    def next_due(self) -> float | None:
        """See `Machine`."""
        return self._timers.next_due()

    def running_timers(self) -> int:
        """See `Machine`."""
        return len(self._timers)


def _ordered(resolved: Resolved) -> Trigger:
    """A trigger that brings this action about without asking the policies again."""
    old = resolved.trigger
    return Trigger(old.event, resolved.action, old.task, old.pod, old.pod_uid, old.job_uid, old.partition, old.version)


def _scope(resolved: Resolved) -> tuple[str, str]:
    """What an action is about: the Job, or a task, pod or partition of it."""
    trigger = resolved.trigger
    names = dict(zip(TARGETED, (trigger.task, trigger.pod, trigger.partition), strict=True))
    return (resolved.action, names[resolved.action]) if resolved.action in names else ("job", "")


def _key(obj: Object) -> JobKey:
    return obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def _phase(job: Object) -> str:
    return phase_of(job.get("status") or {})


__all__ = ["MOST_FAILURES", "JobMachine", "keys"]
