# SPDX-License-Identifier: Apache-2.0
"""Statuses of pods and of their containers as a kubelet writes them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from pumice.cluster.kube.statuses import merge_condition, timestamp
from pumice.cluster.kubelets.container_life import (
    KILLED,
    AskedContainer,
    ContainerEnd,
    ContainerRun,
    ContainerState,
    PodContainers,
    failed,
)
from pumice.cluster.kubelets.pod_runs import PodRun
from pumice.config.durations import SECOND_NS, format_duration
from pumice.core.life.task import ENDED_PHASES
from pumice.core.objects.metadata import Object, section

# --- Containers that say what they do

TOO_LONG: Final = {
    "reason": "DeadlineExceeded",
    "message": "Pod was active on the node longer than the specified deadline",
}


def life_status(run: PodRun, life: PodContainers, now: float) -> Object:
    """Merge patch: the phase, the conditions, and where each container is."""
    first = [_status(run, container, each) for container, each in life.both() if container.first]
    main = [_status(run, container, each) for container, each in life.both() if not container.first]
    run.conditions = _life_conditions(run, life, timestamp(now))
    status: Object = {
        "phase": life.phase(),
        "startTime": timestamp(life.begun),
        "conditions": run.conditions,
        "containerStatuses": main,
    }
    if first:
        status["initContainerStatuses"] = first
    return status | TOO_LONG if life.too_long else status


def added_status(container: AskedContainer, each: ContainerRun) -> Object:
    """Return the status of a container that was added to a pod; its readiness does not count."""
    started = {"running": {"startedAt": timestamp(each.started)}}
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": started if each.state is ContainerState.RUNNING else terminated(each.ended),
        "lastState": {},
    }


def _status(run: PodRun, container: AskedContainer, each: ContainerRun) -> Object:
    runs = each.state is ContainerState.RUNNING
    done = container.first and not container.is_sidecar and each.state is ContainerState.ENDED and not failed(each)
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        # an init container is ready once it has ended well, as the kubelet reports it
        "ready": (runs and not (container.first and not container.is_sidecar)) or done,
        "started": runs,
        "restartCount": each.restarts,
        "state": _state(run, container, each),
        "lastState": terminated(each.ended if each.state is ContainerState.BACKOFF else each.before),
    }


def _state(run: PodRun, container: AskedContainer, each: ContainerRun) -> Object:
    match each.state:
        case ContainerState.RUNNING:
            return {"running": {"startedAt": timestamp(each.started)}}
        case ContainerState.ENDED:
            return terminated(each.ended)
        case ContainerState.BACKOFF:
            whose = f"container={container.name} pod={run.name}_{run.namespace}({run.uid})"
            message = f"back-off {format_duration(int(each.backoff_s) * SECOND_NS)} restarting failed {whose}"
            return {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
        case _:
            return {"waiting": {"reason": "PodInitializing"}}


def terminated(ended: ContainerEnd | None) -> Object:
    """Return the state of an ended container; empty before its end."""
    if ended is None:
        return {}
    return {
        "terminated": {
            "exitCode": ended.exit_code,
            "reason": "Error" if ended.exit_code else "Completed",
            "startedAt": timestamp(ended.started),
            "finishedAt": timestamp(ended.finished),
        }
    }


def _life_conditions(run: PodRun, life: PodContainers, at: str) -> Sequence[Object]:
    phase = life.phase()
    lacking = [
        each.name
        for each, its in life.both()
        if (each.is_sidecar or not each.first) and its.state is not ContainerState.RUNNING
    ]
    unready = {"reason": "ContainersNotReady", "message": f"containers with unready status: [{' '.join(lacking)}]"}
    if phase in ENDED_PHASES:
        unready = {"reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
    first = [
        each.name
        for each, its in life.both()
        if each.first and not each.is_sidecar and (its.state is not ContainerState.ENDED or failed(its))
    ]
    waits: Object = {"type": "Initialized", "status": "True"}
    if first:
        message = f"containers with incomplete status: [{' '.join(first)}]"
        waits = {**waits, "status": "False", "reason": "ContainersNotInitialized", "message": message}
    ready: Object = {"status": "False", **unready} if lacking else {"status": "True"}
    wanted = [{"type": "PodScheduled", "status": "True"}, waits, {"type": "Ready", **ready}]
    # Equal to Ready here: gates of readiness (spec.readinessGates) are not read.
    wanted.append({"type": "ContainersReady", **ready})
    # With the time of the binding: merge_condition keeps a time as long as the status stays.
    known = run.conditions or [{"type": "PodScheduled", "status": "True", "lastTransitionTime": run.scheduled or at}]
    for each in wanted:
        known = merge_condition(known, each, at) or known
    return known


_UNKNOWN: Final = "The container could not be located when the pod was terminated"


def running_status(run: PodRun, now: float) -> Object:
    """Merge patch: all containers run and are ready."""
    at = timestamp(now)
    containers = [
        _container(run, name, image, {"running": {"startedAt": at}}, ready=True) for name, image in run.containers
    ]
    return {
        "phase": "Running",
        "startTime": at,
        "conditions": _conditions(run, at, ready=True),
        "containerStatuses": containers,
    }


def restarted_status(run: PodRun) -> Object:
    """Merge patch: some of the containers were started again."""
    told = [(name, image, {"startedAt": timestamp(_started(run, name))}) for name, image in run.containers]
    return {
        "containerStatuses": [_container(run, name, image, {"running": at}, ready=True) for name, image, at in told]
    }


def resized_status(run: PodRun) -> Object:
    """Merge patch: the containers run on while the pod is resized."""
    return {**restarted_status(run), "conditions": _conditions(run, timestamp(run.started), ready=True)}


def ended_status(run: PodRun, now: float) -> Object:
    """Merge patch: all containers have ended, with the pod's exit code."""
    at = timestamp(now)
    reason = "Error" if run.exit_code else "Completed"

    def ended(name: str) -> Object:
        times = {"startedAt": timestamp(_started(run, name)), "finishedAt": at}
        return {"terminated": {"exitCode": run.exit_code, "reason": reason, **times}}

    return {
        "phase": "Failed" if run.exit_code else "Succeeded",
        "conditions": _conditions(run, at, ready=False),
        "containerStatuses": [_container(run, name, image, ended(name), ready=False) for name, image in run.containers],
    }


def lost_status(run: PodRun, now: float) -> Object:
    """Merge patch: the pod goes before any of its containers has begun."""
    lost = {"terminated": {"exitCode": KILLED, "reason": "ContainerStatusUnknown", "message": _UNKNOWN}}
    return {
        "phase": "Failed",
        "conditions": _conditions(run, timestamp(now), ready=False, failed=True),
        "containerStatuses": [_container(run, name, image, lost, ready=False) for name, image in run.containers],
    }


def refused_status(message: str, reason: str = "UnexpectedAdmissionError") -> Object:
    """Merge patch: the node will not have the pod."""
    return {"phase": "Failed", "reason": reason, "message": message}


def identify(uid: str, status: Object) -> None:
    """Give each container of a pod's status the id that a runtime would: another one for each of its runs."""
    for group in ("containerStatuses", "initContainerStatuses"):
        for each in status.get(group) or ():
            count: int = each["restartCount"]
            for state, runs in ((each["state"], count), (section(each, "lastState"), count - 1)):
                # one that was lost before it began had no run, and so no id
                if section(state, "terminated").get("startedAt"):
                    state["terminated"] = {**state["terminated"], "containerID": _id(uid, each["name"], runs)}
            if "running" in each["state"] or section(each["state"], "terminated").get("startedAt"):
                each["containerID"] = _id(uid, each["name"], count)


def _id(uid: str, name: str, runs: int) -> str:
    return f"containerd://{blake2b(f'{uid}/{name}/{runs}'.encode(), digest_size=32).hexdigest()}"


def _started(run: PodRun, name: str) -> float:
    own = (run.restarted or {}).get(name)
    return run.started if own is None else own.started


def _container(run: PodRun, name: str, image: str, state: Object, *, ready: bool) -> Object:
    own = (run.restarted or {}).get(name)
    said: Object = {"name": name, "image": image, "imageID": "", "ready": ready, "restartCount": 0, "state": state}
    return said if own is None else {**said, "restartCount": own.restarts, "lastState": terminated(own.before)}


def _conditions(run: PodRun, at: str, *, ready: bool, failed: bool = False) -> list[Object]:
    readiness: Object = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": at}
    if not ready:
        readiness["reason"] = "PodFailed" if failed or run.exit_code else "PodCompleted"
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": run.scheduled or at}
    return [scheduled, readiness, *run.conditions]
