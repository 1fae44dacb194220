"""The Job controller as a pure machine: what happened to a Job becomes an action, the action becomes requests.

One action a Job and step: what else has happened waits for its answers, so that every decision is made on what the one
before it has done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from pumice.cluster.controllers.jobs.actions import KEEP_GROUP, SCALES_QUIETLY, USER, kill, plugin_trouble, sync
from pumice.cluster.controllers.jobs.announcements import Announcements
from pumice.cluster.controllers.jobs.cache import JobCache, key_of, no_fixes
from pumice.cluster.controllers.jobs.life import REACTIONS, Action, Do, phase_of
from pumice.cluster.controllers.jobs.policies import COMMAND_ISSUED, JobTrigger, Resolved, resolve
from pumice.cluster.controllers.jobs.state import JobState, controlling_job
from pumice.cluster.controllers.jobs.timers import RETRY, TTL, JobTimers
from pumice.core.messages.commands import ApiRequest, Create, Delete, UpdateStatus
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.core.objects.metadata import Object, parse_time, section
from pumice.core.objects.parts import GROUP_OF_JOB, JOB_OF_OTHERS, POD_OF_JOB, QUEUE_NAMES
from pumice.storage.codec import unpack

MOST_FAILURES: Final = 15
"""Tries after which a Job whose pods or PodGroup the api refuses is terminated (Volcano's --max-requeue-num)."""

_BACKOFF_FIRST_S: Final = 0.005
_BACKOFF_MOST_S: Final = 1000.0
"""Fifteen tries take 164 s (client-go's DefaultTypedControllerRateLimiter, as Volcano's controller has it)."""


class JobMachine:
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
        """What to ask of the api now; empty when there is nothing to do before the next news or timer."""
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
        elif isinstance(reply, Refused) and isinstance(request, Create) and reply.reason != "AlreadyExists":
            self._creation_refused(unpack(request.blob), reply, now)

    def _accepted(self, request: ApiRequest, reply: Accepted, now: float) -> None:
        match request:
            case Create() | UpdateStatus():
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
        """When `step` will have something to do though nothing changed; None: never."""
        return self._timers.next_due()

    def running_timers(self) -> int:
        """How many timers are running."""
        return len(self._timers)
