"""Job controller's knowledge of a Job: the object, the relevant fields of each pod, its PodGroup, its events."""

from __future__ import annotations

from msgspec import Struct, field

from pumice.cluster.controllers import job_keys as keys
from pumice.cluster.controllers.jobs.policies import (
    OUT_OF_SYNC,
    POD_EVICTED,
    POD_FAILED,
    POD_PENDING,
    POD_RUNNING,
    TASK_COMPLETED,
    TASK_FAILED,
    JobTrigger,
)
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.texts import whole_number

JobKey = tuple[str, str]
"""Namespace and name."""

_MAX_RETRY, _NO_LIMIT = 3, -1
"""Of a task that says none, and what stands for as often as may be."""


class PodView(Struct):
    """A pod of a Job. `deleting` is set as soon as the controller has asked for it. `revision` is the newest known.

    `ended`: it had succeeded or failed before its deletion.
    """

    name: str
    uid: str
    job: JobKey
    job_uid: str
    task: str
    version: int
    partition: str
    phase: str
    deleting: bool
    out_of_sync: bool
    exit_code: int
    ready: bool
    revision: int
    restarts: int = 0
    ended: bool = False


class GroupView(Struct):
    """A Job's PodGroup."""

    name: str
    phase: str
    spec: Object
    revision: int


class JobState(Struct):
    """One Job; `job` is None when only its pods or its PodGroup have been seen, or are left.

    `trouble` is what the api last refused to create for it; `wanted` remembers what its PodGroup is to
    be, `hosts_at` the generation that its list of hosts follows.
    """

    key: JobKey
    job: Object | None = None
    revision: int = 0
    pods: dict[str, dict[str, PodView]] = field(default_factory=dict[str, dict[str, PodView]])
    group: GroupView | None = None
    group_gone_at: int = 0
    triggers: dict[JobTrigger, None] = field(default_factory=dict[JobTrigger, None])
    failures: int = 0
    trouble: str = ""
    hosts_at: int = 0
    wanted: tuple[int, int, Object] | None = None

    def happened(self, trigger: JobTrigger) -> None:
        """Note it; the same thing twice counts once."""
        self.triggers[trigger] = None

    def renewed(self) -> None:
        """Another Job has the name."""
        self.failures, self.trouble, self.hosts_at, self.wanted = 0, "", 0, None

    def all_pods(self) -> list[PodView]:
        """Every pod, by task and name."""
        return [pods[name] for _, pods in sorted(self.pods.items()) for name in sorted(pods)]

    def completed(self, task: str) -> bool:
        """Return whether as many pods of the task have succeeded as it has replicas."""
        specs: list[Object] = (self.job or {}).get("spec", {}).get("tasks") or []
        replicas = next((spec.get("replicas", 0) for spec in specs if spec["name"] == task), 0)
        succeeded = sum(pod.phase == "Succeeded" for pod in self.pods.get(task, {}).values())
        return 0 < replicas <= succeeded

    def failed(self, task: str) -> bool:
        """Return whether the containers of the task's pods have used up the task's restarts (Volcano's
        `TaskFailed`).
        """
        specs: list[Object] = (self.job or {}).get("spec", {}).get("tasks") or []
        spec = next((spec for spec in specs if spec["name"] == task), Object())
        most = spec.get("maxRetry") or _MAX_RETRY
        if not spec.get("replicas") or most == _NO_LIMIT:
            return False
        # as Volcano's `TaskFailed` counts: restarts of pods that have ended do not count
        alive = [pod for pod in self.pods.get(task, {}).values() if pod.phase in ("Pending", "Running")]
        return sum(pod.restarts for pod in alive) >= most


def view_of(pod: Object, revision: int) -> PodView | None:
    """The view of a pod that a Job controls; None for any other (it lacks an owner, a task or a version)."""
    meta = pod["metadata"]
    annotations: dict[str, str] = meta.get("annotations") or {}
    version = annotations.get(keys.JOB_VERSION, "")
    if whole_number(version) is None or keys.TASK_SPEC not in annotations or keys.JOB_NAME not in annotations:
        return None
    owner = controlling_job(meta)
    if owner is None:
        return None
    status: Object = pod.get("status") or {}
    containers: list[Object] = status.get("containerStatuses") or []
    first: list[Object] = status.get("initContainerStatuses") or []
    ended: Object = section(section(containers[0], "state"), "terminated") if containers else {}
    return PodView(
        name=meta["name"],
        uid=meta["uid"],
        job=(meta["namespace"], annotations[keys.JOB_NAME]),
        job_uid=owner["uid"],
        task=annotations[keys.TASK_SPEC],
        version=int(version),
        partition=text_map(meta.get("labels")).get(keys.PARTITION_ID, ""),
        phase=status.get("phase") or "Pending",
        deleting="deletionTimestamp" in meta,
        out_of_sync=keys.OUT_OF_SYNC_POD in annotations,
        exit_code=ended.get("exitCode", 0),
        ready=all(container.get("ready", False) for container in containers),
        revision=revision,
        restarts=sum([each.get("restartCount") or 0 for each in (*first, *containers)]),
        ended=status.get("phase") in ("Succeeded", "Failed"),
    )


def controlling_job(meta: Object) -> Object | None:
    """The ownerReference to the Job that controls the object, or None."""
    # one owner at most is the controller, so the first decides
    references: list[Object] = meta.get("ownerReferences") or []
    for reference in references:
        if reference.get("controller"):
            volcano = reference.get("apiVersion") == keys.JOB_API_VERSION and reference["kind"] == "Job"
            return reference if volcano else None
    return None


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
        exit_code=pod.exit_code,
    )
