# SPDX-License-Identifier: Apache-2.0
"""Job controller's knowledge of a Job: the relevant fields of each pod, its PodGroup, its events, and delayed
actions.
"""

from __future__ import annotations

from operator import itemgetter

from msgspec import Struct, field, structs

from pumice.cluster.controllers import job_keys as keys
from pumice.cluster.controllers.jobs.life import TARGETED, Action
from pumice.cluster.controllers.jobs.pods import pod_group_name
from pumice.cluster.controllers.jobs.policies import (
    OUT_OF_SYNC,
    POD_EVICTED,
    POD_FAILED,
    POD_PENDING,
    POD_RUNNING,
    TASK_COMPLETED,
    TASK_FAILED,
    JobTrigger,
    Resolved,
)
from pumice.cluster.controllers.pods_of import controller_of
from pumice.cluster.timers import moment
from pumice.core.go_numbers import parse_int
from pumice.core.life.task import ENDED_PHASES
from pumice.core.objects.metadata import Object, rows, section, text_map
from pumice.core.objects.parts import VOLCANO_JOB
from pumice.core.texts import remembers

JobKey = tuple[str, str]
"""Namespace and name."""

_MAX_RETRY, _NO_LIMIT = 3, -1
"""Of a task that says none, and what stands for as often as may be."""
# Asked at every change of every pod, and there are few versions: nearly all pods are of their Job's first life.
_version = remembers(256)(lambda text: parse_int(text, 32))
_POD_CHANGES = (POD_RUNNING, POD_FAILED, POD_EVICTED)


class PodView(Struct):
    """A pod of a Job. `deleting` is set as soon as the controller has asked for it. `ended`: it had succeeded or failed
    before its deletion.
    """

    name: str
    uid: str
    job_uid: str
    task: str
    version: int
    partition: str
    phase: str
    deleting: bool
    out_of_sync: bool
    exit_code: int
    ready: bool
    restarts: int = 0
    ended: bool = False


class GroupView(Struct):
    """A Job's PodGroup."""

    name: str
    phase: str
    spec: Object


class JobState(Struct):
    """One Job; `job` is None when only its pods or its PodGroup have been seen, or are left.

    `groups`: PodGroups of Jobs of this name, also of one that is going. `pods` by task and name, `tasks` the task of
    each, `succeeded` how many of a task have. `delayed`: actions, at most one a pod, and their times. `trouble` is what
    the api last refused to create for it, `retry_at` when that is tried
    again; `wanted` remembers what its PodGroup is to be, and at which generation; `hosts_at` is the generation that
    its list of hosts follows.
    """

    key: JobKey
    job: Object | None = None
    pods: dict[str, dict[str, PodView]] = field(default_factory=dict[str, dict[str, PodView]])
    tasks: dict[str, str] = field(default_factory=dict[str, str])
    succeeded: dict[str, int] = field(default_factory=dict[str, int])
    groups: dict[str, GroupView] = field(default_factory=dict[str, GroupView])
    triggers: dict[JobTrigger, None] = field(default_factory=dict[JobTrigger, None])
    delayed: dict[str, tuple[float, Resolved]] = field(default_factory=dict[str, tuple[float, Resolved]])
    retry_at: float | None = None
    failures: int = 0
    trouble: str = ""
    hosts_at: int = 0
    wanted: tuple[int, Object] | None = None

    @property
    def group(self) -> GroupView | None:
        """Return the Job's PodGroup: by the name that has its uid, else by its own as older Volcanos called it."""
        if self.job is None:
            return None
        # createOrUpdatePodGroup looks for both, too: a Job from before an upgrade keeps its PodGroup.
        return self.groups.get(pod_group_name(self.job)) or self.groups.get(self.job["metadata"]["name"])

    def happened(self, trigger: JobTrigger) -> bool:
        """Note an event, equal ones once. True when the Job must be looked at."""
        # A dict as an ordered set: equal events of a thousand pods are worked off once, and the order of the others
        # stays.
        self.triggers[trigger] = None
        return True

    def pod(self, name: str) -> PodView | None:
        """Return the known pod of this name."""
        return self.pods[self.tasks[name]][name] if name in self.tasks else None

    def put(self, pod: PodView) -> None:
        """Keep a pod as it is now."""
        held = self.pods.setdefault(pod.task, {})
        self._count(pod.task, pod, held.get(pod.name))
        held[pod.name] = pod
        self.tasks[pod.name] = pod.task

    def remove(self, pod: PodView) -> None:
        """Drop a pod that has gone."""
        del self.pods[self.tasks.pop(pod.name)][pod.name]
        self._count(pod.task, None, pod)
        if not self.pods[pod.task]:
            del self.pods[pod.task]

    def _count(self, task: str, new: PodView | None, old: PodView | None) -> None:
        """Count the pods that have succeeded: to go through all for each that ends takes the square of their number."""
        come, gone = new is not None and new.phase == "Succeeded", old is not None and old.phase == "Succeeded"
        if come != gone:
            self.succeeded[task] = self.succeeded.get(task, 0) + come - gone

    # --- actions that are put off (source: Volcano's `delayActionMap`)

    def delay(self, resolved: Resolved, now: float) -> None:
        """Carry out an action later; repeating it does not put it off."""
        known = self.delayed.get(resolved.trigger.pod)
        # Else a pod that fails again and again would never get its action.
        if known is None or known[1].action is not resolved.action:
            self.delayed.pop(resolved.trigger.pod, None)
            self.delayed[resolved.trigger.pod] = moment(now + resolved.delay_s), resolved

    def moved_on(self, trigger: JobTrigger) -> None:
        """Cancel a pod's delayed actions when its phase has moved on."""
        _, delayed = self.delayed.get(trigger.pod, (0.0, None))
        if delayed is None or trigger.event not in _POD_CHANGES:
            return
        waited = delayed.trigger.event
        # a namesake made in its place may come into view before the old pod's end does
        same_pod = waited == POD_PENDING and trigger.pod_uid == delayed.trigger.pod_uid
        if same_pod or (waited in (POD_FAILED, POD_EVICTED) and trigger.event == POD_RUNNING):
            del self.delayed[trigger.pod]

    def done(self, resolved: Resolved) -> None:
        """Note that an action has been carried out, and cancel equal delayed ones on the same scope."""
        done = _scope(resolved)
        self.delayed = {pod: each for pod, each in self.delayed.items() if _scope(each[1]) != done}

    def ring(self, now: float) -> None:
        """Note the actions that are due, which the policies are not asked about again, and another try."""
        due = [(at, pod) for pod, (at, _) in self.delayed.items() if at <= now]
        for _, pod in sorted(due, key=itemgetter(0)):
            _, resolved = self.delayed.pop(pod)
            self.happened(structs.replace(resolved.trigger, action=resolved.action, policy=resolved.policy))
        if self.retry_at is not None and self.retry_at <= now:
            self.retry_at = None
            self.happened(JobTrigger())

    def next_due(self) -> float | None:
        """Return when an action or another try is due."""
        dues = [at for at, _ in self.delayed.values()]
        return min(dues if self.retry_at is None else [*dues, self.retry_at], default=None)

    # --- its pods

    def all_pods(self) -> list[PodView]:
        """Return every pod, by task and name."""
        return [pods[name] for _, pods in sorted(self.pods.items()) for name in sorted(pods)]

    def completed(self, task: str) -> bool:
        """Return whether as many pods of the task have succeeded as it has replicas."""
        specs: list[Object] = section(self.job or {}, "spec").get("tasks") or []
        replicas = next((spec.get("replicas", 0) for spec in specs if spec["name"] == task), 0)
        return 0 < replicas <= self.succeeded.get(task, 0)

    def failed(self, task: str) -> bool:
        """Return whether the containers of the task's pods have used up the task's restarts (Volcano's
        `TaskFailed`).
        """
        spec = next((spec for spec in rows(section(self.job or {}, "spec"), "tasks") if spec["name"] == task), Object())
        most = spec.get("maxRetry") or _MAX_RETRY
        if not spec.get("replicas") or most == _NO_LIMIT:
            return False
        # as Volcano's `TaskFailed` counts: restarts of pods that have ended do not count
        alive = [pod for pod in self.pods.get(task, {}).values() if pod.phase in ("Pending", "Running")]
        return sum(pod.restarts for pod in alive) >= most


def _scope(resolved: Resolved) -> tuple[str, str]:
    """Return the scope of an action: the Job, or a task, pod or partition of it."""
    trigger = resolved.trigger
    names: dict[Action, str] = dict(zip(TARGETED, (trigger.task, trigger.pod, trigger.partition), strict=True))
    return (resolved.action, names[resolved.action]) if resolved.action in names else ("job", "")


def view_of(pod: Object) -> PodView | None:
    """Return the view of a pod that a Job controls; None for any other (it lacks an owner, a task or a version)."""
    meta = pod["metadata"]
    annotations: dict[str, str] = meta.get("annotations") or {}
    version = _version(annotations.get(keys.JOB_VERSION, ""))
    if version is None or keys.TASK_SPEC not in annotations or keys.JOB_NAME not in annotations:
        return None
    owner = controller_of(pod, VOLCANO_JOB)
    if owner is None:
        return None
    status: Object = pod.get("status") or {}
    containers: list[Object] = status.get("containerStatuses") or []
    first: list[Object] = status.get("initContainerStatuses") or []
    # The first container alone: Volcano's updatePod supports only one (job_controller_handler.go).
    ended: Object = section(section(containers[0], "state"), "terminated") if containers else {}
    return PodView(
        name=meta["name"],
        uid=meta["uid"],
        job_uid=owner["uid"],
        task=annotations[keys.TASK_SPEC],
        version=version,
        partition=text_map(meta.get("labels")).get(keys.PARTITION_ID, ""),
        phase=status.get("phase") or "Pending",
        deleting="deletionTimestamp" in meta,
        out_of_sync=keys.OUT_OF_SYNC_POD in annotations,
        exit_code=ended.get("exitCode", 0),
        # A pod without container statuses is ready, as isDependsOnPodsReady in job_controller_actions.go has it.
        ready=all(container.get("ready", False) for container in containers),
        restarts=sum([each.get("restartCount") or 0 for each in (*first, *containers)]),
        ended=status.get("phase") in ENDED_PHASES,
    )


def pod_trigger(state: JobState, old: PodView | None, new: PodView) -> JobTrigger:
    """Return the trigger of a pod's creation or change for its Job. A pod first seen in a phase counts as having
    reached it now.
    """
    return _trigger(new, OUT_OF_SYNC if new.out_of_sync else _event(state, old, new))


def gone_trigger(pod: PodView) -> JobTrigger:
    """Return the trigger of a pod's removal: an eviction, unless the controller wanted it."""
    return _trigger(pod, OUT_OF_SYNC if pod.out_of_sync else POD_EVICTED)


def _event(state: JobState, old: PodView | None, new: PodView) -> str:
    before = None if old is None else old.phase
    if before == new.phase:
        again = old is not None and new.restarts > old.restarts
        # Asked of each restart: no phase changes when the kubelet starts a container anew.
        return TASK_FAILED if again and state.failed(new.task) else OUT_OF_SYNC
    if new.phase == "Failed":
        return POD_FAILED
    if new.phase == "Succeeded":
        return TASK_COMPLETED if state.completed(new.task) else OUT_OF_SYNC
    if new.phase == "Running":
        return POD_RUNNING
    return POD_PENDING if new.phase == "Pending" else OUT_OF_SYNC


def _trigger(pod: PodView, event: str) -> JobTrigger:
    if event == OUT_OF_SYNC:  # all alike: a thousand of them are one
        return JobTrigger()
    return JobTrigger(
        event=event,
        task=pod.task,
        pod=pod.name,
        pod_uid=pod.uid,
        job_uid=pod.job_uid,
        partition=pod.partition,
        version=pod.version,
        # pkg/controllers/job/job_controller_handler.go: only updatePod names the code, of a pod that has just failed.
        # Else the policy for it would fire again when the pod is deleted.
        exit_code=pod.exit_code if event == POD_FAILED else 0,
    )
