"""The status of a Deployment: its pods counted, and the conditions that `kubectl wait` and `rollout status` look at
(source: Kubernetes' `deployment/progress.go`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pumice.cluster.controllers.workloads.rollout import bounds, has, replicas_of
from pumice.cluster.kube.times import timestamp
from pumice.core.objects.metadata import Object, parse_time, section

Words = tuple[str, str, str]
"""Status, reason and message of a condition."""

_COUNTED: Final = ("replicas", "readyReplicas", "availableReplicas")
_DONE: Final = "NewReplicaSetAvailable"
_PAUSED: Final = "DeploymentPaused"
_LATE: Final = "ProgressDeadlineExceeded"


def deployment_status(deployment: Object, newest: Object | None, sets: Sequence[Object], now: float) -> Object:
    """What it is to be, `newest` being the ReplicaSet of its template, one of its `sets`."""
    numbers = {name: sum(has(each, name) for each in sets) for name in _COUNTED}
    numbers["updatedReplicas"] = has(newest, "replicas") if newest is not None else 0
    numbers["unavailableReplicas"] = max(sum(map(replicas_of, sets)) - numbers["availableReplicas"], 0)
    status: Object = {
        "observedGeneration": deployment["metadata"].get("generation", 1),
        **{name: number for name, number in numbers.items() if number},
    }
    before = {one.get("type"): one for one in section(deployment, "status").get("conditions") or ()}
    given = {
        "Available": _available(deployment, numbers["availableReplicas"]),
        "Progressing": _progressing(deployment, newest, numbers, before.get("Progressing"), now),
    }
    stamp, moved = timestamp(now), _moved(section(deployment, "status"), numbers)
    return {
        **status,
        "conditions": [
            _condition(before.get(name), name, values, stamp, again=moved and name == "Progressing")
            for name, values in given.items()
        ],
    }


def timed_out_at(deployment: Object, newest: Object | None) -> float | None:
    """When it will have taken too long over its progress; None: it is done, or does not try."""
    spec = deployment["spec"]
    listed: list[Object] = section(deployment, "status").get("conditions") or []
    found = [one for one in listed if one.get("type") == "Progressing"]
    progress = found[0] if found else dict[str, Any]()
    if spec.get("paused") or newest is None or progress.get("reason") in (None, _DONE, _LATE, _PAUSED):
        return None
    return parse_time(progress.get("lastUpdateTime")) + int(spec.get("progressDeadlineSeconds") or 600)


def _available(deployment: Object, available: int) -> Words:
    if available >= int(deployment["spec"].get("replicas", 1)) - bounds(deployment)[1]:
        return "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
    return "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."


def _progressing(
    deployment: Object, newest: Object | None, numbers: dict[str, int], before: Object | None, now: float
) -> Words:
    wanted, reason = int(deployment["spec"].get("replicas", 1)), (before or {}).get("reason")
    name = newest["metadata"]["name"] if newest is not None else ""
    which = f'ReplicaSet "{name}"' if name else f'Deployment "{deployment["metadata"]["name"]}"'
    if deployment["spec"].get("paused"):
        return "Unknown", _PAUSED, "Deployment is paused"
    done = newest is not None and all(
        numbers[what] == wanted for what in ("updatedReplicas", "replicas", "availableReplicas")
    )
    if done:
        return "True", _DONE, f"{which} has successfully progressed."
    due = timed_out_at(deployment, newest)
    moved = _moved(section(deployment, "status"), numbers)
    if not moved and (reason == _LATE or (due is not None and now >= due)):
        return "False", _LATE, f"{which} has timed out progressing."
    if reason == _DONE and newest is not None and has(newest, "replicas") == numbers["replicas"] and not moved:
        return "True", _DONE, (before or {}).get("message", "")  # a pod that is missing now is no rollout
    return "True", "ReplicaSetUpdated", f"{which} is progressing."


def _moved(status: Object, numbers: dict[str, int]) -> bool:
    """Whether there are more new, fewer old, or more ready pods than before."""

    def before(name: str) -> int:
        return int(status.get(name) or 0)

    old = before("replicas") - before("updatedReplicas")
    return (
        numbers["updatedReplicas"] > before("updatedReplicas")
        or numbers["replicas"] - numbers["updatedReplicas"] < old
        or numbers["readyReplicas"] > before("readyReplicas")
        or numbers["availableReplicas"] > before("availableReplicas")
    )


def _condition(before: Object | None, name: str, values: Words, stamp: str, *, again: bool) -> Object:
    """The condition with the times it had, as far as nothing changed; `again`: there was progress."""
    status, reason, message = values
    made = {"type": name, "status": status, "reason": reason, "message": message}
    known = before or {}
    same = made.items() <= known.items() and not (again and reason != _DONE)
    updated = known.get("lastUpdateTime", stamp) if same else stamp
    turned = known.get("lastTransitionTime", stamp) if known.get("status") == status else stamp
    return {**made, "lastUpdateTime": updated, "lastTransitionTime": turned}
