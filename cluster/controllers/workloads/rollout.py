"""How many pods each ReplicaSet of a Deployment is to have (source: Kubernetes' `deployment/rolling.go`, `recreate.go`
and `sync.go`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.whole_numbers import whole_number

MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
"""On a ReplicaSet: how many pods all of them together might have when it was last scaled."""


def replicas_of(replica_set: Object) -> int:
    """What it was asked for."""
    return int(section(replica_set, "spec").get("replicas", 1))


def has(replica_set: Object, what: str) -> int:
    """A number of its status: `replicas`, `readyReplicas`, `availableReplicas`."""
    return int(section(replica_set, "status").get(what) or 0)


def bounds(deployment: Object) -> tuple[int, int]:
    """How many pods there may be beyond those that are wanted, and how many may be missing."""
    spec = deployment["spec"]
    wanted, strategy = int(spec.get("replicas", 1)), section(spec, "strategy")
    if strategy.get("type") == "Recreate":
        return 0, 0
    rolling = section(strategy, "rollingUpdate")
    surge = _share(rolling.get("maxSurge", "25%"), wanted, up=True)
    missing = _share(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    return surge, min(missing, wanted) if surge or missing else min(1, wanted)


def _share(given: object, of: int, *, up: bool) -> int:
    """A number, or a share in per cent."""
    if isinstance(given, str):
        per_cent = whole_number(given.removesuffix("%")) or 0
        return -(-of * per_cent // 100) if up else of * per_cent // 100
    return given if isinstance(given, int) else 0


def most_pods(deployment: Object) -> int:
    """How many pods there may be at a time."""
    wanted = int(deployment["spec"]["replicas"])
    return wanted + bounds(deployment)[0] if wanted else 0


def recreated(deployment: Object, new: Object | None, old: Sequence[Object]) -> dict[str, int]:
    """All old pods go; only then do the new ones come."""
    wanted = {each["metadata"]["name"]: 0 for each in old}
    if new is not None:
        gone = not any(replicas_of(each) or has(each, "replicas") for each in old)
        wanted[new["metadata"]["name"]] = int(deployment["spec"]["replicas"]) if gone else replicas_of(new)
    return wanted


def rolled(deployment: Object, new: Object, old: Sequence[Object]) -> dict[str, int]:
    """One step: the new one grows as far as there may be more pods; else old ones shrink as far as enough are left."""
    wanted, (surge, missing) = int(deployment["spec"]["replicas"]), bounds(deployment)
    asked = {each["metadata"]["name"]: replicas_of(each) for each in (*old, new)}
    name, total = new["metadata"]["name"], sum(asked.values())
    if asked[name] > wanted:
        return {**asked, name: wanted}
    room = min(wanted + surge - total, wanted - asked[name])
    if room > 0:
        return {**asked, name: asked[name] + room}
    lost = max(asked[name] - has(new, "availableReplicas"), 0)
    spare = total - (wanted - missing) - lost
    for each in old:  # those that are not available first
        idle = max(asked[each["metadata"]["name"]] - has(each, "availableReplicas"), 0)
        taken = max(min(idle, spare), 0)
        asked[each["metadata"]["name"]] -= taken
        spare -= taken
    available = sum(has(each, "availableReplicas") for each in (*old, new))
    surplus = min(available - (wanted - missing), spare)
    for each in old:
        taken = max(min(asked[each["metadata"]["name"]], surplus), 0)
        asked[each["metadata"]["name"]] -= taken
        surplus -= taken
    return asked


def scaled(deployment: Object, new: Object | None, old: Sequence[Object]) -> dict[str, int]:
    """After a change of the number of pods: each ReplicaSet has its share of it, the largest one the rest."""
    wanted = int(deployment["spec"]["replicas"])
    active = [each for each in (*old, *([new] if new is not None else ())) if replicas_of(each)]
    only = active[0] if len(active) == 1 else new if not active else None
    if only is not None:
        return {only["metadata"]["name"]: wanted}
    if new is not None and replicas_of(new) == has(new, "availableReplicas") == wanted:
        return {each["metadata"]["name"]: 0 for each in old}
    if section(deployment["spec"], "strategy").get("type") == "Recreate":
        return {}
    total = sum(map(replicas_of, active))
    left = most_pods(deployment) - total
    active.sort(key=replicas_of, reverse=True)
    asked: dict[str, int] = {}
    for each in active:
        share = _proportion(deployment, each)
        share = max(min(share, left), 0) if left > 0 else min(max(share, left), 0)
        asked[each["metadata"]["name"]] = max(replicas_of(each) + share, 0)
        left -= share
    if active:
        first = active[0]["metadata"]["name"]
        asked[first] = max(asked[first] + left, 0)
    return asked


def _proportion(deployment: Object, replica_set: Object) -> int:
    """How many more, or fewer, pods its share of the new number are."""
    before = whole_number(text_map(replica_set["metadata"].get("annotations")).get(MAX_REPLICAS, "")) or 0
    if not deployment["spec"]["replicas"]:
        return -replicas_of(replica_set)
    now = int(replicas_of(replica_set) * most_pods(deployment) / (before or replicas_of(replica_set)) + 0.5)
    return now - replicas_of(replica_set)
