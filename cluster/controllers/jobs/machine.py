"""The Job controller as a pure machine: what happened to a Job becomes an action, the action becomes requests.

One action a Job and step: what else has happened waits for its answers, so that every decision is made on what the one
before it has done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from msgspec import structs

from pumice.cluster.controllers.jobs.actions import KEEP_GROUP, SCALES_QUIETLY, USER, kill, plugin_trouble, sync
from pumice.cluster.controllers.jobs.life import FINISHED, REACTIONS, TARGETED, Action, Do, JobPhase, phase_of
from pumice.cluster.controllers.jobs.policies import (
    COMMAND_ISSUED,
    JOB_UNKNOWN,
    POD_EVICTED,
    POD_FAILED,
    POD_PENDING,
    POD_RUNNING,
    JobTrigger,
    Resolved,
    resolve,
)
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
from pumice.cluster.kube.events import Sayings
from pumice.cluster.machine import Machine
from pumice.cluster.timers import Timers
from pumice.config.durations import SECOND_NS, format_duration
from pumice.core.messages.commands import ApiRequest, Create, Delete, Patch, UpdateStatus
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.core.objects.metadata import Object, parse_time, section
from pumice.core.objects.parts import GROUP_OF_JOB, JOB_OF_OTHERS, POD_OF_JOB, QUEUE_NAMES
from pumice.storage.codec import unpack

# --- Timers

TTL: Final = "ttl"
RETRY: Final = "retry"
DELAY: Final = "delay"

TimerKey = tuple[str, JobKey, str]
"""What for, the Job, the pod of a delayed action."""

_POD_CHANGES: Final = (POD_RUNNING, POD_FAILED, POD_EVICTED)


class JobTimers:
    """One delayed action a pod at most (source: Volcano's `delayActionMap`)."""

    def __init__(self) -> None:
        self._timers: Timers[TimerKey] = Timers()
        self._delayed: dict[TimerKey, Resolved] = {}

    def set(self, purpose: str, job: JobKey, due: float) -> None:
        """A time to live, or another try."""
        self._timers.set((purpose, job, ""), due)

    def drop(self, purpose: str, job: JobKey) -> None:
        """It is not to come any more."""
        self._timers.cancel((purpose, job, ""))

    def is_set(self, purpose: str, job: JobKey) -> bool:
        """Return whether the timer is still to come."""
        return (purpose, job, "") in self._timers

    def delay(self, job: JobKey, resolved: Resolved, now: float) -> None:
        """Carry out an action later; the same one again does not put it off."""
        timer: TimerKey = (DELAY, job, resolved.trigger.pod)
        known = self._delayed.get(timer)
        if known is None or known.action is not resolved.action:
            self._delayed[timer] = resolved
            self._timers.set(timer, now + resolved.delay_s)

    def moved_on(self, job: JobKey, trigger: JobTrigger) -> None:
        """A pod that has moved on takes back what was to be done about where it was."""
        timer: TimerKey = (DELAY, job, trigger.pod)
        delayed = self._delayed.get(timer)
        if delayed is None or trigger.event not in _POD_CHANGES:
            return
        waited = delayed.trigger.event
        # a namesake made in its place may come into view before the old pod's end does
        same_pod = waited == POD_PENDING and trigger.pod_uid == delayed.trigger.pod_uid
        if same_pod or (waited in (POD_FAILED, POD_EVICTED) and trigger.event == POD_RUNNING):
            self._drop(timer)

    def done(self, job: JobKey, resolved: Resolved) -> None:
        """An action has been carried out: others that were to do the same to the same need not."""
        for timer, delayed in list(self._delayed.items()):
            if timer[1] == job and _scope(delayed) == _scope(resolved):
                self._drop(timer)

    def forget(self, job: JobKey) -> None:
        """The Job is gone, or another one has its name."""
        for timer in [timer for timer in self._delayed if timer[1] == job]:
            self._drop(timer)
        for purpose in (TTL, RETRY):
            self._timers.cancel((purpose, job, ""))

    def take_due(self, now: float) -> list[tuple[str, JobKey, JobTrigger]]:
        """Return the purpose, the Job and the trigger of each due delayed action. The trigger performs the action
        without asking the policies again.
        """
        due: list[tuple[str, JobKey, JobTrigger]] = []
        for timer in self._timers.take_due(now):
            resolved = self._delayed.pop(timer, None)
            due.append((timer[0], timer[1], JobTrigger() if resolved is None else _ordered(resolved)))
        return due

    def next_due(self) -> float | None:
        """The earliest of all, or None."""
        return self._timers.next_due()

    def __len__(self) -> int:
        return len(self._timers)

    def _drop(self, timer: TimerKey) -> None:
        self._delayed.pop(timer, None)
        self._timers.cancel(timer)


def _ordered(resolved: Resolved) -> JobTrigger:
    old = resolved.trigger
    return structs.replace(old, action=resolved.action, policy=resolved.policy)


def _scope(resolved: Resolved) -> tuple[str, str]:
    """Return the scope of an action: the Job, or a task, pod or partition of it."""
    trigger = resolved.trigger
    names: dict[Action, str] = dict(zip(TARGETED, (trigger.task, trigger.pod, trigger.partition), strict=True))
    return (resolved.action, names[resolved.action]) if resolved.action in names else ("job", "")


# --- The cache
# What a change means to a Job is noted on it as a trigger, and the Job as one to look at (`dirty`).

_COMMANDS: Final = frozenset(str(action) for action in Action)


EXPIRE: Final = "aborted-jobs-expire"
ENDED_STAY_ENDED: Final = "ended-pods-are-not-evicted"


def no_fixes() -> Collection[str]:
    """Return no switch: the controllers decide as Volcano v1.15.1 does."""
    return ()


class JobCache:
    """Single writer of every `JobState`, except for the marks of the actions on pods that they delete."""

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
            # another Job of that name begins without the state of the one before
            state.renewed()
            self._timers.forget(state.key)
        if old is None or old["spec"] != job["spec"] or phase_of(section(old, "status")) != phase:
            self.happened(state, JobTrigger())
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        # Volcano's `isJobFinished` (garbagecollector.go) leaves Aborted out
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
        # its state at the deletion: on its way out it reaches a last phase like any other
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
            # Jobs without their queue were not carried out, and nothing else wakes them
            for state in self.jobs.values():
                if state.job is not None and state.job["spec"].get("queue") == name:
                    self.happened(state, JobTrigger())

    def _priority_class(self, found: Object, revision: int, *, deleted: bool) -> None:
        self.priorities.pop(found["metadata"]["name"], None)
        if not deleted:
            self.priorities[found["metadata"]["name"]] = found.get("value", 0)
        # rises with every change: it marks fields of PodGroups that were worked out before
        self.priorities_at = max(self.priorities_at + 1, revision)

    def _command(self, command: Object, *, deleted: bool) -> None:
        if deleted:
            self.commands.pop(key_of(command), None)
        elif section(command, "target").get("kind") == "Job" and command.get("action") in _COMMANDS:
            self.commands[key_of(command)] = command


def key_of(obj: Object) -> JobKey:
    """Namespace and name."""
    return obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


# --- Events
# No decision reads them: they are written only where a client can read them.

SOURCE: Final = "vc-controller-manager"
EXECUTE: Final = "ExecuteAction"
POLICY: Final = "PolicyApplied"
"""The reason of an event that Volcano does not have: its events name the action alone."""
_REFUSALS: Final = {
    "Pod": ("FailedCreate", "Error creating pods: [{}]"),
    "PodGroup": ("PodGroupError", "Failed to create PodGroup, err: {}"),
    "PersistentVolumeClaim": ("PVCError", "Failed to create PVC, err: {}"),
}
_PLUGIN: Final = ("PluginError", "Execute plugin when job add failed, err: {}")


class Announcements:
    """Events about Jobs, until they are taken. `aloud`: whether there are readers."""

    def __init__(self, user: str, *, aloud: bool) -> None:
        self._sayings = Sayings(user)
        self._aloud = aloud
        self._requests: list[Create | Patch] = []

    def take(self) -> list[Create | Patch]:
        """Take out the requests that write the events."""
        requests, self._requests = self._requests, []
        return requests

    def executed(self, job: Object, resolved: Resolved, now: float) -> None:
        """An action begins, or is put off."""
        if resolved.delay_s > 0:
            delay = format_duration(round(resolved.delay_s * SECOND_NS))
            self._say(job, EXECUTE, f"Execute action {resolved.action} after {delay}", now)
        elif resolved.action is not Action.SYNC_JOB:
            self._say(job, EXECUTE, f"Start to execute action {resolved.action} ", now)
            if because := resolved.because():
                self._say(job, POLICY, because, now)

    def commanded(self, job: Object, action: str, now: float) -> None:
        """A command has come, and is taken away."""
        message = f"Start to execute command {action}, and clean it up to make sure executed not more than once."
        self._say(job, "CommandIssued", message, now)

    def given_up(self, job: Object, now: float) -> None:
        """Announce that a Job was tried too often."""
        self._say(job, EXECUTE, f"Job failed on action {Action.SYNC_JOB} for retry limit reached", now)

    def refused(self, job: Object, kind: str, why: str, now: float) -> None:
        """The api will not have what the Job needs, or a plugin cannot make it."""
        reason, message = _REFUSALS.get(kind, _PLUGIN)
        self._say(job, reason, message.format(why), now, warning=True)

    def _say(self, job: Object, reason: str, message: str, now: float, *, warning: bool = False) -> None:
        if self._aloud:
            self._requests.append(self._sayings.say(job, reason, message, now, source=SOURCE, warning=warning))


MOST_FAILURES: Final = 15
"""Tries after which a Job whose pods or PodGroup the api refuses is terminated (Volcano's --max-requeue-num)."""

_BACKOFF_FIRST_S: Final = 0.005
_BACKOFF_MOST_S: Final = 1000.0
"""Fifteen tries take 164 s (client-go's DefaultTypedControllerRateLimiter, as Volcano's controller has it)."""


class JobMachine(Machine):
    """Acts for Jobs. `read`: `unpack`, or what gives the same, not to be changed.

    `aloud`: whether to say in events what is done, and to keep how long it took to make pods. `fixes`: the defects of
    Volcano that are mended now (`pumice.config.fixes`).
    """

    kinds = (QUEUE_NAMES, "PriorityClass", JOB_OF_OTHERS, GROUP_OF_JOB, POD_OF_JOB, "Command")

    def __init__(
        self,
        read: Callable[[bytes], Object] = unpack,
        *,
        aloud: bool = False,
        fixes: Callable[[], Collection[str]] = no_fixes,
    ) -> None:
        self._read = read
        self._fixes = fixes
        self._aloud = aloud
        self._said = Announcements(USER, aloud=aloud)
        self._waits: list[float] = []
        self._timers = JobTimers()
        self._cache = JobCache(self._timers, fixes)

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """An object is there, or is gone, as of `revision`."""
        self._cache.observe(kind, obj, revision, deleted=deleted)

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is to do before the next news or timer."""
        # a command is taken away first and carried out on the answer: never twice, whatever crashes in between
        requests: list[ApiRequest] = [
            Delete("Command", *key, uid=command["metadata"]["uid"], user=USER)
            for key, command in self._cache.commands.items()
        ]
        for purpose, key, trigger in self._timers.take_due(now):
            state = self._cache.jobs.get(key)
            if state is None or state.job is None:
                continue
            if purpose == TTL:
                requests.append(Delete("Job", *key, uid=state.job["metadata"]["uid"], user=USER))
            else:
                self._cache.happened(state, trigger)
        for state in self._cache.take_dirty():
            if state.job is not None:
                requests += self._act(state, state.job, now)
        return requests + self._said.take()

    def _act(self, state: JobState, job: Object, now: float) -> list[ApiRequest]:
        """The first thing that is more than a sync, else a sync; what is left waits for the next step."""
        resolved = Resolved(Action.SYNC_JOB, JobTrigger())
        while state.triggers and resolved.action is Action.SYNC_JOB:
            trigger = next(iter(state.triggers))
            del state.triggers[trigger]
            self._timers.moved_on(state.key, trigger)
            found = resolve(job, trigger)
            if found.delay_s > 0:
                self._timers.delay(state.key, found, now)
                self._said.executed(job, found, now)
            else:
                resolved = found
        if state.triggers:
            self._cache.dirty[state.key] = None
        return self._carry_out(state, job, resolved, now)

    def _carry_out(self, state: JobState, job: Object, resolved: Resolved, now: float) -> list[ApiRequest]:
        if "deletionTimestamp" in job["metadata"]:
            return []
        self._said.executed(job, resolved, now)
        reaction = REACTIONS[(phase_of(section(job, "status")), resolved.action)]
        if resolved.action is not Action.SYNC_JOB:
            self._timers.done(state.key, resolved)
        if reaction.do is not Do.SYNC:
            return kill(state, reaction, resolved, now, keep_group=KEEP_GROUP in self._fixes())
        if job["spec"].get("queue") not in self._cache.queues:
            return []  # the queue's coming is news
        priorities = (self._cache.priorities_at, self._cache.priorities)
        requests = sync(state, reaction, priorities, now, scales_quietly=SCALES_QUIETLY in self._fixes())
        if words := plugin_trouble(state):
            self._failed(state, "plugin", words, now)
        elif not any(isinstance(request, Create) for request in requests):
            state.failures = 0  # nothing is missing: what is refused later is another trouble
        return requests

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:
        """The answer to one request of the last step; they come in order, before the next step. What was written is
        known from the answer, before the watch brings it.
        """
        if isinstance(reply, Accepted):
            self._accepted(request, reply, now)
        # AlreadyExists does not fail: the object is there, which was wanted
        elif isinstance(reply, Refused) and isinstance(request, Create) and reply.reason != "AlreadyExists":
            self._creation_refused(unpack(request.blob), reply, now)

    def _accepted(self, request: ApiRequest, reply: Accepted, now: float) -> None:
        match request:
            case Create() | UpdateStatus():
                # at once, before the watch brings it: else the next step would make the same pods again
                obj = self._read(reply.blob)
                if obj["kind"] in ("Pod", "PodGroup", "Job"):
                    self._cache.observe(obj["kind"], obj, int(obj["metadata"]["resourceVersion"]))
                if self._aloud and isinstance(request, Create) and obj["kind"] == "Pod":
                    self._made(obj)
            case Delete(kind="PodGroup"):
                self._cache.group_gone((request.namespace, request.name), reply.revision)
            case Delete(kind="Command"):
                self._issue(self._cache.commands.pop((request.namespace, request.name), None), now)
            case _:
                pass

    def _made(self, pod: Object) -> None:
        owner = controlling_job(pod["metadata"])
        state = None if owner is None else self._cache.jobs.get((key_of(pod)[0], owner["name"]))
        if state is not None and state.job is not None:
            born, job_born = (each["metadata"].get("creationTimestamp") for each in (pod, state.job))
            self._waits.append(parse_time(born) - parse_time(job_born))

    def take_waits(self) -> tuple[float, ...]:
        """Seconds from a Job to each of its pods that were created since this was asked last. Source: Volcano
        `ObserveJobToPodCreationLatency`, by the objects' own times, as there.
        """
        waits, self._waits = tuple(self._waits), []
        return waits

    def _issue(self, command: Object | None, now: float) -> None:
        if command is None:
            return
        state = self._cache.jobs.get((command["metadata"]["namespace"], command["target"]["name"]))
        if state is not None:
            self._cache.happened(state, JobTrigger(COMMAND_ISSUED, command["action"]))
            if state.job is not None:
                self._said.commanded(state.job, command["action"], now)

    def _creation_refused(self, obj: Object, reply: Refused, now: float) -> None:
        owner = controlling_job(obj["metadata"])
        state = self._cache.jobs.get((key_of(obj)[0], owner["name"])) if owner is not None else None
        if state is not None:
            self._failed(state, obj["kind"], f"{obj['kind']} {obj['metadata']['name']}: {reply.message}", now)

    def _failed(self, state: JobState, kind: str, words: str, now: float) -> None:
        """Say so on the Job, try again later and later, give the Job up after too many times."""
        # one failure a try, however many pods of a gang are refused
        if state.job is None or self._timers.is_set(RETRY, state.key):
            return
        if not state.failures:
            self._said.refused(state.job, kind, words, now)
        state.trouble = words
        state.failures += 1
        if state.failures > MOST_FAILURES:
            self._said.given_up(state.job, now)
            state.failures = 0
            self._cache.happened(state, JobTrigger(COMMAND_ISSUED, Action.TERMINATE_JOB))
            return
        delay_s = min(_BACKOFF_FIRST_S * 2 ** (state.failures - 1), _BACKOFF_MOST_S)
        self._timers.set(RETRY, state.key, now + delay_s)

    def next_due(self) -> float | None:
        """Return the time when `step` has work though nothing changed; None: never."""
        return self._timers.next_due()

    def running_timers(self) -> int:
        """Return the number of running timers."""
        return len(self._timers)
