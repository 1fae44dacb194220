"""What a node agent writes: the status of a pod that runs, or has ended."""

from __future__ import annotations

from typing import Any, Final

from pumice.actors.agents.container_life import KILLED
from pumice.actors.agents.pod_runs import PodRun
from pumice.actors.kube.times import timestamp

Object = dict[str, Any]

_UNKNOWN: Final = "The container could not be located when the pod was terminated"


def running_status(run: PodRun, now: float) -> Object:
    """Merge patch: all containers run and are ready."""
    at = timestamp(now)
    containers = [_container(name, image, {"running": {"startedAt": at}}, ready=True) for name, image in run.containers]
    return {
        "phase": "Running",
        "startTime": at,
        "conditions": _conditions(run, at, ready=True),
        "containerStatuses": containers,
    }


def ended_status(run: PodRun, now: float) -> Object:
    """Merge patch: all containers have ended, with the pod's exit code."""
    at = timestamp(now)
    reason = "Error" if run.exit_code else "Completed"
    ended = {
        "terminated": {
            "exitCode": run.exit_code,
            "reason": reason,
            "startedAt": timestamp(run.started),
            "finishedAt": at,
        }
    }
    return {
        "phase": "Failed" if run.exit_code else "Succeeded",
        "conditions": _conditions(run, at, ready=False),
        "containerStatuses": [_container(name, image, ended, ready=False) for name, image in run.containers],
    }


def lost_status(run: PodRun, now: float) -> Object:
    """Merge patch: the pod goes before any of its containers has begun."""
    lost = {"terminated": {"exitCode": KILLED, "reason": "ContainerStatusUnknown", "message": _UNKNOWN}}
    return {
        "phase": "Failed",
        "conditions": _conditions(run, timestamp(now), ready=False, failed=True),
        "containerStatuses": [_container(name, image, lost, ready=False) for name, image in run.containers],
    }


def refused_status(message: str, reason: str = "UnexpectedAdmissionError") -> Object:
    """Merge patch: the node will not have the pod."""
    return {"phase": "Failed", "reason": reason, "message": message}


def _container(name: str, image: str, state: Object, *, ready: bool) -> Object:
    return {"name": name, "image": image, "imageID": "", "ready": ready, "restartCount": 0, "state": state}


def _conditions(run: PodRun, at: str, *, ready: bool, failed: bool = False) -> list[Object]:
    readiness: Object = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": at}
    if not ready:
        readiness["reason"] = "PodFailed" if failed or run.exit_code else "PodCompleted"
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": run.scheduled or at}
    return [scheduled, readiness, *run.conditions]
