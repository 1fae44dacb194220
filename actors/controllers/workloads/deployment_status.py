"""The status of a Deployment: its pods counted, and the conditions that `kubectl wait` and `rollout status` look at."""

from __future__ import annotations

from typing import Any

from actors.kube.times import timestamp
from core.objects.metadata import section
from core.whole_numbers import whole_number

Object = dict[str, Any]


def deployment_status(deployment: Object, newest: Object | None, now: float) -> Object:
    """What it is to be, `newest` being the ReplicaSet of its template."""
    status: Object = {"observedGeneration": deployment["metadata"].get("generation", 1)}
    found = section(newest, "status") if newest is not None else {}
    replicas, ready = found.get("replicas", 0), found.get("readyReplicas", 0)
    if replicas:
        status |= {"replicas": replicas, "updatedReplicas": replicas}
    if ready:
        status |= {"readyReplicas": ready, "availableReplicas": ready}
    return {**status, "conditions": _conditions(deployment, replicas, ready, timestamp(now))}


def _conditions(deployment: Object, replicas: int, ready: int, stamp: str) -> list[Object]:
    wanted = deployment["spec"].get("replicas", 1)
    least = wanted - _may_miss(deployment, wanted)
    done = replicas == ready == wanted
    name = deployment["metadata"]["name"]
    available = (
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        if ready >= least
        else ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    progressing = (
        ("True", "NewReplicaSetAvailable", f'Deployment "{name}" has successfully progressed.')
        if done
        else ("True", "ReplicaSetUpdated", f'Deployment "{name}" is progressing.')
    )
    listed: list[Object] = section(deployment, "status").get("conditions") or []
    before = {one.get("type"): one for one in listed}
    given = (("Available", available), ("Progressing", progressing))
    return [_condition(before.get(name), name, values, stamp) for name, values in given]


def _condition(before: Object | None, name: str, values: tuple[str, str, str], stamp: str) -> Object:
    """The condition with the times it had, as far as nothing changed."""
    status, reason, message = values
    made = {"type": name, "status": status, "reason": reason, "message": message}
    known = before or {}
    updated = known.get("lastUpdateTime", stamp) if made.items() <= known.items() else stamp
    turned = known.get("lastTransitionTime", stamp) if known.get("status") == status else stamp
    return {**made, "lastUpdateTime": updated, "lastTransitionTime": turned}


def _may_miss(deployment: Object, wanted: int) -> int:
    """How many pods may be missing: maxUnavailable, rounded down (Kubernetes' default is 25 %)."""
    strategy = section(deployment["spec"], "strategy")
    if strategy.get("type") == "Recreate":
        return 0
    most = section(strategy, "rollingUpdate").get("maxUnavailable", "25%")
    if isinstance(most, str):
        return wanted * (whole_number(most.removesuffix("%")) or 0) // 100
    return min(int(most), wanted)
