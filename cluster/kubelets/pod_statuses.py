"""What a node agent writes: the status of a pod that runs, or has ended."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from pumice.cluster.kube.conditions import timestamp
from pumice.cluster.kubelets.container_life import KILLED
from pumice.cluster.kubelets.container_statuses import terminated
from pumice.cluster.kubelets.pod_runs import PodRun
from pumice.core.objects.metadata import Object, section

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
