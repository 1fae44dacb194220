# SPDX-License-Identifier: Apache-2.0
"""The rule of Volcano's Jobs: events of a Job become actions, and actions become requests.

One action a Job and look: what else has happened waits for its answers, so that every decision is made on what the one
before it has done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from pumice.cluster.controllers.family import Agenda, ChildName, ChildWords, OwnerRule, OwnFamily
from pumice.cluster.controllers.jobs.actions import KEEP_GROUP, SCALES_QUIETLY, USER, kill, plugin_trouble, sync
from pumice.cluster.controllers.jobs.life import FINISHED, REACTIONS, Action, Do, JobPhase, phase_of
from pumice.cluster.controllers.jobs.pods import pod_name
from pumice.cluster.controllers.jobs.policies import COMMAND_ISSUED, JOB_UNKNOWN, JobTrigger, Resolved, resolve
from pumice.cluster.controllers.jobs.state import GroupView, JobState, gone_trigger, pod_trigger, view_of
from pumice.cluster.controllers.pods_of import Key, controller_of
from pumice.cluster.kube.events import Sayings
from pumice.cluster.timers import moment
from pumice.config.durations import SECOND_NS, format_duration
from pumice.core.messages.commands import ApiRequest, Create, Delete, Patch
from pumice.core.objects.metadata import Object, parse_time, section
from pumice.core.objects.parts import GROUP_OF_JOB, JOB_OF_OTHERS, POD_OF_JOB, QUEUE_NAMES, VOLCANO_JOB

EXPIRE: Final = "aborted-jobs-expire"
ENDED_STAY_ENDED: Final = "ended-pods-are-not-evicted"
HEAR_UNKNOWN: Final = "restarted-jobs-hear-unknown"

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
        """Announce that an action begins, or is put off."""
        if resolved.delay_s > 0:
            delay = format_duration(round(resolved.delay_s * SECOND_NS))
            self._say(job, EXECUTE, f"Execute action {resolved.action} after {delay}", now)
        elif resolved.action is not Action.SYNC_JOB:
            self._say(job, EXECUTE, f"Start to execute action {resolved.action} ", now)
            if because := resolved.because():
                self._say(job, POLICY, because, now)

    def commanded(self, job: Object, action: str, now: float) -> None:
        """Announce that a command has come, and is deleted."""
        message = f"Start to execute command {action}, and clean it up to make sure executed not more than once."
        self._say(job, "CommandIssued", message, now)

    def given_up(self, job: Object, now: float) -> None:
        """Announce that a Job was tried too often."""
        self._say(job, EXECUTE, f"Job failed on action {Action.SYNC_JOB} for retry limit reached", now)

    def refused(self, job: Object, kind: str, why: str, now: float) -> None:
        """Announce that the api refuses a request for the Job, or that a plugin cannot make it."""
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
_VIEWED: Final[Object] = {}


class VolcanoJobRule(OwnerRule):
    """Rule of Volcano's Jobs, by name as in Volcano: a Job takes over the pods of an earlier one of its name.

    `aloud`: whether to say in events what is done, and to keep how long it took to make pods. `fixes`: the defects of
    Volcano that are mended now (`pumice.config.fixes`).
    """

    summary = (
        "a PodGroup and the pods of its tasks; policies, dependsOn, plugins, volumes, Commands, ttlSecondsAfterFinished"
    )
    owner = JOB_OF_OTHERS
    owner_type = VOLCANO_JOB
    children = (GROUP_OF_JOB, POD_OF_JOB)
    others = (QUEUE_NAMES, "PriorityClass")
    commands = frozenset(Action)
    adopts = ""
    heard_in_turn = "Pod"
    reporter = SOURCE
    user = USER

    def __init__(self, *, aloud: bool = False, fixes: Callable[[], Collection[str]] = tuple) -> None:
        self._fixes = fixes
        self._aloud = aloud
        self._said = Announcements(USER, aloud=aloud)
        self._waits: list[float] = []
        self._states: dict[str, JobState] = {}

    def mark_of(self, owner: Object) -> str:
        """Return namespace and name."""
        return f"{owner['metadata']['namespace']}/{owner['metadata']['name']}"

    def parent_of(self, child: Object) -> str | None:
        """Return namespace and name of the Job that controls a child; None without one."""
        reference = controller_of(child, VOLCANO_JOB)
        return None if reference is None else f"{child['metadata']['namespace']}/{reference['name']}"

    def kept(self, child: Object) -> Object:
        """Return nothing: the rule keeps a view of each child."""
        return _VIEWED

    def words(self, owner: Object, child: Object) -> ChildWords:
        """Return no words: a Job's pods are not spoken of."""
        return ChildWords()

    # --- what changed

    def owner_changed(self, mark: str, old: Object | None, new: Object) -> bool:
        """Note that a Job has come (`old` is None) or has changed."""
        state = self._state(mark)
        state.job = new
        known = old is not None and old["spec"] == new["spec"]
        if old is not None and known and phase_of(section(old, "status")) == phase_of(section(new, "status")):
            return False
        return state.happened(JobTrigger())

    def child_changed(self, mark: str, name: ChildName, old: Object | None, new: Object | None) -> bool:
        """Note that a pod or PodGroup has come, has changed, or has gone (`new` is None)."""
        state = self._state(mark)
        if name[0] == "PodGroup":
            trigger = self._group(state, name[1][1], new)
        else:
            trigger = self._pod_gone(state, name[1][1]) if new is None else self._pod(state, new)
        if state.job is None and not state.pods and not state.groups:
            del self._states[mark]
        return trigger is not None and state.happened(trigger)

    def other_changed(self, owner: Object, kind: str, other: Object, *, fresh: bool) -> bool:
        """Note that a queue or a priority class has changed."""
        state = self._states[self.mark_of(owner)]
        if kind == "PriorityClass":
            # No look now: Volcano, too, reads the class when the Job is synced next (calcPGMinResources).
            state.wanted = None
            return False
        # Jobs without their queue were not carried out, and nothing else wakes them
        return fresh and owner["spec"].get("queue") == other["metadata"]["name"] and state.happened(JobTrigger())

    def commanded(self, mark: str, action: str, now: float) -> bool:
        """Note that a Command for a Job was deleted and is to be carried out."""
        state = self._states[mark]
        if state.job is not None:
            self._said.commanded(state.job, action, now)
        return state.happened(JobTrigger(COMMAND_ISSUED, action))

    def forget(self, mark: str) -> None:
        """Forget a removed Job; its pods belong to the next one of that name."""
        state = self._states.pop(mark)
        if state.pods or state.groups:
            self._states[mark] = JobState(
                state.key, pods=state.pods, tasks=state.tasks, succeeded=state.succeeded, groups=state.groups
            )

    def _state(self, mark: str) -> JobState:
        state = self._states.get(mark)
        if state is None:
            namespace, _, name = mark.partition("/")
            state = self._states[mark] = JobState((namespace, name))
        return state

    def _pod(self, state: JobState, pod: Object) -> JobTrigger | None:
        new = view_of(pod)
        if new is None:
            return None
        old = state.pod(new.name)
        if old is not None and old.uid != new.uid:
            old = None
        # its state at the deletion: on its way out it reaches a last phase like any other
        new.ended = new.ended if not new.deleting or old is None else old.ended
        new.deleting = new.deleting or (old is not None and old.deleting)
        state.put(new)
        return pod_trigger(state, old, new)

    def _pod_gone(self, state: JobState, name: str) -> JobTrigger | None:
        old = state.pod(name)
        if old is None:
            return None
        state.remove(old)
        spared = old.ended and ENDED_STAY_ENDED in self._fixes()
        return JobTrigger() if spared else gone_trigger(old)

    def _group(self, state: JobState, name: str, group: Object | None) -> JobTrigger | None:
        known = state.groups.pop(name, None)
        if group is None:
            return None if known is None else JobTrigger()
        phase: str = section(group, "status").get("phase") or ""
        view = state.groups[name] = GroupView(name, phase, group["spec"])
        # that of a Job of the same name before is none of this one's
        if (known is not None and known.phase == phase) or (state.job is not None and state.group is not view):
            return None
        if phase != "Unknown":
            return JobTrigger()
        # pkg/controllers/job/job_controller_handler.go: updatePodGroup says no version, which Go reads as 0. So its
        # request is outdated as soon as the Job's pods were all killed once.
        return JobTrigger(JOB_UNKNOWN, version=None if HEAR_UNKNOWN in self._fixes() else 0)

    # --- what to do

    def made_later(self, owner: Object, exists: Callable[[str, str], bool]) -> Iterator[str]:
        """Yield the tasks that depend on others."""
        name, phase = owner["metadata"]["name"], phase_of(section(owner, "status"))
        if phase in FINISHED or phase is JobPhase.ABORTED:
            return
        tasks = [task for task in section(owner, "spec").get("tasks") or () if task.get("name")]
        there = {task["name"] for task in tasks if exists("Pod", pod_name(name, task["name"], 0))}
        for task in tasks:
            depends, replicas = section(task, "dependsOn"), int(task.get("replicas") or 0)
            targets: list[str] = depends.get("name") or []
            if replicas and task["name"] not in there and there.intersection(targets):
                before = (" or " if depends.get("iteration") == "any" else " and ").join(targets)
                yield f"pods of task {task['name']} ({replicas}) are made when those of {before} run (dependsOn)"

    def work(self, family: OwnFamily, now: float) -> Agenda:
        """Return the requests for an owner that is not being deleted."""
        job, agenda = family.owner, Agenda()
        state = self._states[self.mark_of(job)]
        state.ring(now)
        expires = self._expires(job)
        if expires is not None and expires <= now:
            agenda.first.append(Delete("Job", *state.key, uid=job["metadata"]["uid"], user=USER))
        elif expires is not None:
            agenda.due = expires
        if state.triggers:
            agenda.requests = self._act(state, job, family.world, now)
        for at in (state.next_due(), now if state.triggers else None):
            if at is not None:
                agenda.no_later_than(at)
        agenda.last += self._said.take()
        return agenda

    def _expires(self, job: Object) -> float | None:
        status, ttl = section(job, "status"), job["spec"].get("ttlSecondsAfterFinished")
        phase = phase_of(status)
        # Volcano's `isJobFinished` (garbagecollector.go) leaves Aborted out
        finished = phase in FINISHED or (phase is JobPhase.ABORTED and EXPIRE in self._fixes())
        return parse_time(status["state"].get("lastTransitionTime")) + ttl if finished and ttl is not None else None

    def _act(
        self, state: JobState, job: Object, world: Mapping[str, Mapping[Key, Object]], now: float
    ) -> list[ApiRequest]:
        """Return the first action other than a sync, or a sync; the others wait for the next look."""
        resolved = Resolved(Action.SYNC_JOB, JobTrigger())
        # Events that ask for no more than a sync are worked off together, so that a restart among them is not held up.
        while state.triggers and resolved.action is Action.SYNC_JOB:
            trigger = next(iter(state.triggers))
            del state.triggers[trigger]
            state.moved_on(trigger)
            found = resolve(job, trigger)
            if found.delay_s > 0:
                state.delay(found, now)
                self._said.executed(job, found, now)
            else:
                resolved = found
        self._said.executed(job, resolved, now)
        reaction = REACTIONS[(phase_of(section(job, "status")), resolved.action)]
        if resolved.action is not Action.SYNC_JOB:
            state.done(resolved)
        if reaction.do is not Do.SYNC:
            return kill(state, job, reaction, resolved, now, keep_group=KEEP_GROUP in self._fixes())
        if ("", job["spec"].get("queue")) not in world["Queue"]:
            return []  # the queue's coming is news
        quietly = SCALES_QUIETLY in self._fixes()
        requests = sync(state, job, reaction, world["PriorityClass"], now, scales_quietly=quietly)
        if words := plugin_trouble(state, job):
            self._failed(state, job, "plugin", words, now)
        elif not any(isinstance(request, Create) for request in requests):
            state.failures = 0  # nothing is missing: what is refused later is another trouble
        return requests

    def made(self, owner: Object, child: Object) -> None:
        """Note that a child was created."""
        if self._aloud and child["kind"] == "Pod":
            born, job_born = (each["metadata"].get("creationTimestamp") for each in (child, owner))
            self._waits.append(parse_time(born) - parse_time(job_born))

    def take_waits(self) -> tuple[float, ...]:
        """Return the seconds from a Job to each of its pods created since the last call. Source: Volcano
        `ObserveJobToPodCreationLatency`, by the objects' own times, as there.
        """
        waits, self._waits = tuple(self._waits), []
        return waits

    def refused(self, mark: str, child: Object, why: str, now: float) -> bool:
        """Note that a child was refused; the Job is tried again with growing delays."""
        state = self._states.get(mark)
        if state is not None and state.job is not None:
            words = f"{child['kind']} {child['metadata']['name']}: {why}"
            self._failed(state, state.job, child["kind"], words, now)
        return True

    def _failed(self, state: JobState, job: Object, kind: str, words: str, now: float) -> None:
        """Report a failure on the Job, try again with growing delays, and give the Job up after too many tries."""
        # one failure a try, however many pods of a gang are refused
        if state.retry_at is not None:
            return
        if not state.failures:
            self._said.refused(job, kind, words, now)
        state.trouble = words
        state.failures += 1
        if state.failures > MOST_FAILURES:
            self._said.given_up(job, now)
            state.failures = 0
            state.happened(JobTrigger(COMMAND_ISSUED, Action.TERMINATE_JOB))
            return
        delay_s = min(_BACKOFF_FIRST_S * 2 ** (state.failures - 1), _BACKOFF_MOST_S)
        state.retry_at = moment(now + delay_s)
