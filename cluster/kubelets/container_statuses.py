"""What a node agent writes of the containers of a pod that say what they do (source: the kubelet)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.kube.conditions import merge_condition, timestamp
from pumice.cluster.kubelets.container_life import (
    AskedContainer,
    ContainerEnd,
    ContainerRun,
    ContainerState,
    PodContainers,
    failed,
)
from pumice.cluster.kubelets.pod_runs import PodRun
from pumice.config.durations import SECOND_NS, format_duration
from pumice.core.objects.metadata import Object

TOO_LONG: Final = {
    "reason": "DeadlineExceeded",
    "message": "Pod was active on the node longer than the specified deadline",
}


def life_status(run: PodRun, life: PodContainers, now: float) -> Object:
    """Merge patch: the phase, the conditions, and where each container is."""
    first = [_status(run, container, each) for container, each in life.both() if container.first]
    main = [_status(run, container, each) for container, each in life.both() if not container.first]
    run.conditions = _conditions(run, life, timestamp(now))
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
    """Of a container that was added to a pod; nobody asks whether it is ready."""
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
    done = container.first and not container.aside and each.state is ContainerState.ENDED and not failed(each)
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": (runs and not (container.first and not container.aside)) or done,
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
    """Return the state of a container that has ended so; nothing of one that has not."""
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


def _conditions(run: PodRun, life: PodContainers, at: str) -> Sequence[Object]:
    phase = life.phase()
    lacking = [
        each.name
        for each, its in life.both()
        if (each.aside or not each.first) and its.state is not ContainerState.RUNNING
    ]
    unready = {"reason": "ContainersNotReady", "message": f"containers with unready status: [{' '.join(lacking)}]"}
    if phase in ("Succeeded", "Failed"):
        unready = {"reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
    first = [
        each.name
        for each, its in life.both()
        if each.first and not each.aside and (its.state is not ContainerState.ENDED or failed(its))
    ]
    waits: Object = {"type": "Initialized", "status": "True"}
    if first:
        message = f"containers with incomplete status: [{' '.join(first)}]"
        waits = {**waits, "status": "False", "reason": "ContainersNotInitialized", "message": message}
    ready: Object = {"status": "False", **unready} if lacking else {"status": "True"}
    wanted = [{"type": "PodScheduled", "status": "True"}, waits, {"type": "Ready", **ready}]
    wanted.append({"type": "ContainersReady", **ready})
    known = run.conditions or [{"type": "PodScheduled", "status": "True", "lastTransitionTime": run.scheduled or at}]
    for each in wanted:
        known = merge_condition(known, each, at) or known
    return known
