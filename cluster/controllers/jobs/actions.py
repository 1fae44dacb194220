# SPDX-License-Identifier: Apache-2.0
"""Requests for a Job's pods, PodGroup and status (source: Volcano's `syncJob` and `killPods`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pumice.cluster.controllers import job_keys as keys
from pumice.cluster.controllers.jobs.life import Action, Do, JobPhase, Reaction, Then, next_phase, phase_of
from pumice.cluster.controllers.jobs.plugins.plugins import controlled, plugins_of, trouble_of
from pumice.cluster.controllers.jobs.plugins.svc import SvcPlugin
from pumice.cluster.controllers.jobs.pods import PodMaker, claim_name, pod_group_name, pod_name
from pumice.cluster.controllers.jobs.policies import Resolved
from pumice.cluster.controllers.jobs.state import JobKey, JobState, PodView
from pumice.cluster.controllers.jobs.status import (
    CREATION_REFUSED,
    conditioned,
    counted,
    initial,
    run_for,
    tallied,
    troubled,
)
from pumice.cluster.controllers.pods_of import reference
from pumice.cluster.kube.merge_patch import diff_patch
from pumice.cluster.kube.min_resources import least_of, min_resources
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.commands import ApiRequest, Create, Delete, Patch, UpdateStatus
from pumice.core.objects.metadata import Object, rows, section
from pumice.storage.codec import repack

# --- The PodGroup of a Job
# Source: Volcano's `createOrUpdatePodGroup`.


def pod_group_of(job: Object, fields: Object) -> Object:
    """Return a new PodGroup; `fields` are those that follow the Job's."""
    meta, spec = job["metadata"], job["spec"]
    # Queue and topology are said once: createOrUpdatePodGroup writes them to a new PodGroup and never again.
    group_spec = fields | {"queue": spec["queue"]}
    if (topology := spec.get("networkTopology")) is not None:
        group_spec["networkTopology"] = _topology(topology)
    return {
        "apiVersion": keys.POD_GROUP_API_VERSION,
        "kind": "PodGroup",
        "metadata": {
            "name": pod_group_name(job),
            "namespace": meta["namespace"],
            "annotations": dict(meta.get("annotations") or {}),
            "labels": dict(meta.get("labels") or {}),
            "ownerReferences": [reference(job)],
        },
        "spec": group_spec,
    }


def followed(job: Object, priorities: Mapping[str, int]) -> Object:
    """Return the fields of the PodGroup's spec that follow the Job's when it is scaled.

    `priorities` are the values of the priority classes by name.
    """
    spec = job["spec"]
    tasks: list[Object] = spec.get("tasks") or []
    least: int = spec.get("minAvailable", 0)
    fields: Object = {
        "minMember": least,
        # a task without minAvailable needs all its replicas, as in Volcano's `createOrUpdatePodGroup`
        "minTaskMember": {task["name"]: least_of(task) for task in tasks},
        "minResources": min_resources(tasks, least, priorities),
    }
    if spec.get("priorityClassName"):
        fields["priorityClassName"] = spec["priorityClassName"]
    if policies := [_sub_group(task) for task in tasks if task.get("partitionPolicy") is not None]:
        fields["subGroupPolicy"] = policies
    return fields


def _sub_group(task: Object) -> Object:
    partition: Object = task["partitionPolicy"]
    policy: Object = {
        "name": task["name"],
        "subGroupSize": partition.get("partitionSize") or 0,
        "minSubGroups": partition.get("minPartitions") or 0,
        "labelSelector": {"matchLabels": {keys.TASK_SPEC: task["name"]}},
        "matchLabelKeys": [keys.PARTITION_ID],
    }
    if (topology := partition.get("networkTopology")) is not None:
        policy["networkTopology"] = _topology(topology)
    return policy


def _topology(topology: Object) -> Object:
    kept: Object = {"mode": topology.get("mode", "hard")}
    for name in ("highestTierAllowed", "highestTierName"):
        if topology.get(name) not in (None, ""):
            return {**kept, name: topology[name]}
    return kept


USER: Final = "job-controller"
SCALES_QUIETLY: Final = "scaling-is-no-eviction"
KEEP_GROUP: Final = "restarts-keep-the-pod-group"
_NOT_STARTED: Final = ("", "Pending")
_LAST: Final = (Then.EMPTY, Then.RESTARTED)
_BEGINNINGS: Final = (Then.RESTART, Then.ABORT, Then.COMPLETE, Then.TERMINATE)


def sync(
    state: JobState,
    job: Object,
    reaction: Reaction,
    classes: Mapping[JobKey, Object],
    now: float,
    *,
    scales_quietly: bool = False,
) -> list[ApiRequest]:
    """Bring PodGroup and pods to the Job's spec, once the PodGroup is past Pending; then the status.

    `classes`: the priority classes. `scales_quietly`: pods that are too many are marked, so that their end is not an
    event of the Job.
    """
    old: Object = job.get("status") or {}
    status, requests = dict(old), list[ApiRequest]()
    if not old.get("state"):
        status = initial(job, now)
    # in every sync until it leaves Pending, as Volcano's `isInitiated` has it
    if (status["state"].get("phase") or "Pending") == "Pending":
        status, requests = _initiate(state, job, status)
    else:
        requests = _follow_replicas(state, job)
    if state.trouble:
        status["state"] = {**status["state"], **troubled(state.trouble)}
        state.trouble = ""
    elif status["state"].get("reason") == CREATION_REFUSED:
        status["state"] = {"phase": status["state"]["phase"]}
    requests += _pod_group_requests(state, job, classes)
    # no pods before the PodGroup is past Pending (`syncTask` in Volcano's job_controller_actions.go)
    if state.group is None or state.group.phase in _NOT_STARTED:
        return requests + _settle(job, old, status, reaction.then, now)
    changes, views = _pod_requests(state, job, mark=scales_quietly)
    status = counted(status, job["spec"], views)
    return requests + changes + _settle(job, old, status, reaction.then, now)


def kill(
    state: JobState, job: Object, reaction: Reaction, resolved: Resolved, now: float, *, keep_group: bool = False
) -> list[ApiRequest]:
    """Delete the pods that the reaction is about, write the status, delete the PodGroup.

    `keep_group`: the PodGroup goes only when all pods are killed.
    """
    old: Object = job.get("status") or {}
    status = dict(old)
    whole = reaction.do is Do.KILL
    doomed = _all_but_ended(state, job, reaction) if whole else _targets(state, resolved)
    # the version tells pods of this life from those of earlier ones; a kill without pods to kill begins no new life
    if whole and (reaction.then in _BEGINNINGS or any(not pod.deleting for pod in doomed)):
        status["version"] = status.get("version", 0) + 1
    requests: list[ApiRequest] = []
    for pod in doomed:
        requests += _delete_pod(state, pod)
    status = tallied(status, state.all_pods())
    # As in the plugins' OnJobDelete: what the status does not name was not made, and is not deleted.
    requests += _without_plugin_objects(job, status.pop("controlledResources", None) or {})
    requests += _settle(job, old, status, reaction.then, now, killed=True, because=_because(resolved))
    if state.group is not None and (whole or not keep_group):
        requests.append(Delete("PodGroup", state.key[0], state.group.name, user=USER))
    return requests


def plugin_trouble(state: JobState, job: Object) -> str:
    """Return why plugins cannot make the due pods; empty without a problem."""
    started = state.group is not None and state.group.phase not in _NOT_STARTED
    return trouble_of(job) if started else ""


def _settle(
    job: Object,
    old: Object,
    status: Object,
    then: Then,
    now: float,
    *,
    killed: bool = False,
    because: Mapping[str, str] = MappingProxyType({}),
) -> list[ApiRequest]:
    """Let the counts decide the phase and write the changes; `because`: why the phase differs."""
    phase = next_phase(phase_of(status), then, job["spec"], status)
    # counted as a restart begins, and not when it is over (Volcano's `state` package)
    if then is Then.RESTART:
        status["retryCount"] = status.get("retryCount", 0) + 1
    if phase is not None:
        said = section(status, "state")
        # the reason of a Job's end is kept until then; a new life begins without
        keeps = said.get("reason") == CREATION_REFUSED or (then in _LAST and phase is not JobPhase.PENDING)
        told = {name: said[name] for name in ("reason", "message") if keeps and name in said}
        status["state"] = {"phase": str(phase), **because, **told}
    # a kill notes a condition for a new phase only, a sync for every change, as Volcano does
    if phase is not None or (status != old and not killed):
        status = conditioned(status, now)
    if killed:
        status = run_for(status, job, now)
    if status == old:
        return []
    patch = diff_patch(old, status)
    return [UpdateStatus("Job", *_name(job), repack(patch), user=USER)]


def _because(resolved: Resolved) -> dict[str, str]:
    """Return what the Job's state says of an action that a policy asked for, until the phase changes."""
    because = resolved.because()
    return {"reason": str(resolved.action), "message": because} if because else {}


def _initiate(state: JobState, job: Object, status: Object) -> tuple[Object, list[ApiRequest]]:
    """Return the requests for plugins and volumes of a Job that has not run yet."""
    resources: Object = dict(controlled(job))
    requests = _plugin_objects(state, job, status)
    for number, volume in enumerate(rows(job["spec"], "volumes")):
        claim = claim_name(job, number, volume)
        resources[f"volume-pvc-{claim}"] = claim
        if volume.get("volumeClaim") and state.failures == 0:
            requests.append(Create(repack(_claim(job, claim, volume["volumeClaim"])), user=USER))
    if resources:
        status["controlledResources"] = resources
    return status, requests


def _plugin_objects(state: JobState, job: Object, status: Object) -> list[ApiRequest]:
    """Return the objects that the Job's plugins need beside its pods, unless its status names them already."""
    known = section(status, "controlledResources")
    fresh = [plugin for name, plugin in plugins_of(job).items() if f"plugin-{name}" not in known or state.failures]
    return [Create(repack(obj), user=USER) for plugin in fresh for obj in plugin.objects()]


def _without_plugin_objects(job: Object, known: Object) -> list[ApiRequest]:
    plugins = [plugin for name, plugin in plugins_of(job).items() if f"plugin-{name}" in known]
    namespace = job["metadata"]["namespace"]
    doomed = [obj for plugin in plugins for obj in plugin.objects()]
    return [Delete(obj["kind"], namespace, obj["metadata"]["name"], user=USER) for obj in doomed]


def _follow_replicas(state: JobState, job: Object) -> list[ApiRequest]:
    """Return the requests by which the list of hosts follows the Job's spec (Volcano's `OnJobUpdate`, which svc alone
    has).
    """
    generation = job["metadata"].get("generation", 0)
    if state.hosts_at == generation or "svc" not in section(job["spec"], "plugins"):
        return []
    svc = plugins_of(job)["svc"]
    if not isinstance(svc, SvcPlugin):
        return []
    state.hosts_at = generation
    hosts = svc.hosts()
    data = repack({"data": hosts["data"]})
    namespace, name = job["metadata"]["namespace"], hosts["metadata"]["name"]
    return [Create(repack(hosts), user=USER), Patch("ConfigMap", namespace, name, data, user=USER)]


def _claim(job: Object, name: str, spec: Object) -> Object:
    meta = {"name": name, "namespace": job["metadata"]["namespace"], "ownerReferences": [reference(job)]}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def _pod_group_requests(state: JobState, job: Object, classes: Mapping[JobKey, Object]) -> list[ApiRequest]:
    wanted = _wanted(state, job, classes)
    if state.group is None:
        return [Create(repack(pod_group_of(job, wanted)), user=USER)]
    changed = {name: value for name, value in wanted.items() if state.group.spec.get(name) != value}
    if not changed:
        return []
    current = {name: state.group.spec[name] for name in changed if name in state.group.spec}
    patch = repack({"spec": diff_patch(current, changed)})
    return [Patch("PodGroup", state.key[0], state.group.name, patch, user=USER)]


def _wanted(state: JobState, job: Object, classes: Mapping[JobKey, Object]) -> Object:
    """Return the PodGroup's fields, computed anew only when the Job's spec or a priority class changed."""
    generation = job["metadata"].get("generation", 0)
    if state.wanted is None or state.wanted[0] != generation:
        priorities = {name: each.get("value", 0) for (_, name), each in classes.items()}
        state.wanted = generation, followed(job, priorities)
    return state.wanted[1]


def _pod_requests(state: JobState, job: Object, *, mark: bool) -> tuple[list[ApiRequest], list[PodView]]:
    """Return creates and deletes, and the resulting pods: new ones are counted as Pending, as they certainly
    will be.
    """
    requests: list[ApiRequest] = []
    views: list[PodView] = []
    deletes: list[ApiRequest] = []
    for task in rows(job["spec"], "tasks"):
        present = dict(state.pods.get(task["name"], {}))
        missing: list[int] = []
        for index in range(task.get("replicas", 0)):
            view = present.pop(pod_name(job["metadata"]["name"], task["name"], index), None)
            if view is None:
                missing.append(index)
                continue
            if view.out_of_sync and not view.deleting:
                # It has its mark already, from an earlier process whose delete came to nothing.
                deletes += _delete_pod(state, view, mark=False)
            views.append(view)
        for view in present.values():  # more than are wanted
            if not view.deleting:
                deletes += _delete_pod(state, view, mark=mark)
            views.append(view)
        if missing and _may_start(state, job, task):
            requests += [Create(repack(pod), user=USER) for pod in _new_pods(job, task, missing)]
            # Counted now, as in syncJob: a Running Job whose pods are mostly made anew is Pending from this status on.
            views += [_expected(job, task, index) for index in missing]
    # pods are made before others are deleted, in the order of Volcano's `syncJob`
    return requests + deletes, views


def _new_pods(job: Object, task: Object, indices: Sequence[int]) -> Iterator[Object]:
    maker, plugins = PodMaker(job, task), list(plugins_of(job).values())
    for index in indices:
        pod = maker.make(index)
        for plugin in plugins:
            pod = plugin.pod(pod, task, index)
        yield pod


def _expected(job: Object, task: Object, index: int) -> PodView:
    name = pod_name(job["metadata"]["name"], task["name"], index)
    return PodView(name, "", job["metadata"]["uid"], task["name"], 0, "", "Pending", False, False, 0, False)


def _may_start(state: JobState, job: Object, task: Object) -> bool:
    """Return whether dependsOn is met: of `any` one named task must be up (when several are named), otherwise all of
    them.
    """
    depends: Object | None = task.get("dependsOn")
    if trouble_of(job):
        return False
    if depends is None:
        return True
    names: list[str] = depends.get("name") or []
    up = [_is_up(state, job, name) for name in names]
    # waitDependsOnTaskMeetCondition reads `iteration` only where several tasks are named.
    return any(up) if len(names) > 1 and depends.get("iteration") == "any" else all(up)


def _is_up(state: JobState, job: Object, name: str) -> bool:
    """Return whether the task's minimum is running and ready, or has succeeded."""
    task = next((each for each in rows(job["spec"], "tasks") if each["name"] == name), Object())
    pods = state.pods.get(name, {}).values()
    up = sum(pod.phase == "Succeeded" or (pod.phase == "Running" and pod.ready) for pod in pods)
    # A task without minAvailable is up without any pod: Volcano's pointer is nil then, and nothing is compared.
    return up >= int(task.get("minAvailable", 0))


def _targets(state: JobState, resolved: Resolved) -> Sequence[PodView]:
    """Return the pods of the action's task, pod or partition."""
    trigger = resolved.trigger
    pods = state.pods.get(trigger.task, {}).values()
    match resolved.action:
        case Action.RESTART_POD:
            return [pod for pod in pods if pod.name == trigger.pod]
        case Action.RESTART_PARTITION:
            return [pod for pod in pods if pod.partition == trigger.partition]
        case _:
            return list(pods)


def _all_but_ended(state: JobState, job: Object, reaction: Reaction) -> Sequence[PodView]:
    """Return the pods without ended ones: at the last try these stay, whatever the action."""
    # The last pods are what is left to look at when the Job has failed (killPods in job_controller_actions.go).
    retries, most = section(job, "status").get("retryCount", 0), job["spec"].get("maxRetry", 0)
    keep = reaction.keep_ended or retries >= most - 1
    return [pod for pod in state.all_pods() if not (keep and pod.phase in ENDED_PHASES)]


def _delete_pod(state: JobState, pod: PodView, *, mark: bool = True) -> Iterable[ApiRequest]:
    """Mark the pod as to be deleted, so that its end does not count as an eviction, and delete it."""
    if pod.deleting:
        return []
    pod.deleting = True
    where = ("Pod", state.key[0], pod.name)
    # by uid: a new pod of the same name must not go in its place
    delete = Delete(*where, uid=pod.uid, user=USER)
    if not mark:
        return [delete]
    pod.out_of_sync = True
    return [Patch(*where, repack({"metadata": {"annotations": {keys.OUT_OF_SYNC_POD: "true"}}}), user=USER), delete]


def _name(job: Object) -> tuple[str, str]:
    return job["metadata"]["namespace"], job["metadata"]["name"]
