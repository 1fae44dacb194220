# SPDX-License-Identifier: Apache-2.0
"""Usage of a ResourceQuota (source: Kubernetes' quota controller and its evaluators).

Of kinds that are not in the table (custom resources) there is the number of objects, which the API keeps
(`cluster/api/admission/quotas.py`). The scopes are Kubernetes' own, without affinity across namespaces; the
scheduler's plugin knows none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pumice.cluster.api.kinds import KINDS
from pumice.cluster.kube.min_resources import Amounts, added, pod_usage, texts
from pumice.core.life.task import ENDED_PHASES
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.pod_template import counted_spec, is_infeasible, largest
from pumice.core.quantity import quantity_of

# --- Quality of service classes


def qos_class(spec: Object) -> str:
    """Return Guaranteed, Burstable or BestEffort by cpu and memory of all containers (source: Kubernetes'
    `ComputePodQOS`).
    """
    guaranteed, anything = True, False
    containers: list[Object] = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for container in containers:
        resources = section(container, "resources")
        requests, limits = section(resources, "requests"), section(resources, "limits")
        for name in ("cpu", "memory"):
            anything = anything or name in requests or name in limits
            # an absent request counts as its limit
            asked = requests[name] if name in requests else limits.get(name)
            guaranteed = guaranteed and name in limits and asked == limits[name]
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


OBJECTS: Final = "count/"
"""And a resource, `plural.group`: how many objects of it there are."""
COUNT: Final = "count/pods"
PREFIXES: Final = ("requests.", "limits.", "hugepages-")
NAMES: Final = ("cpu", "memory", "ephemeral-storage", "pods", COUNT)
OF_CLAIMS: Final = "requests.storage"
_WITH_OWN_NAMES: Final = (
    "ConfigMap", "CronJob.batch", "DaemonSet", "Deployment", "Job.batch", "PersistentVolumeClaim", "ReplicaSet",
    "ReplicationController", "ResourceQuota", "Secret", "Service", "StatefulSet",
)  # fmt: skip
"""The kinds that Kubernetes' quota controller registers itself (`pkg/quota/v1/install/registry.go`)."""
COUNTED: Final[Mapping[str, str]] = {key: KINDS[key].resource for key in _WITH_OWN_NAMES}
"""Kinds, by key, whose objects are counted: as `count/` and this name, those of the core group as this name too."""
_OF_PORTS: Final = ("services.nodeports", "services.loadbalancers")
_CLASS: Final = ".storageclass.storage.k8s.io/"
_STATUSES: Final = "containerStatuses"
_NAMES: Final = frozenset(
    (*NAMES, *_OF_PORTS, OF_CLAIMS, *(f"count/{each}" for each in COUNTED.values()), *COUNTED.values())
)


def usage_of(kind: str, obj: Object, resource: str = "") -> Amounts:
    """Return the usage of an object of a kind (by key); `resource`: the resource, for a kind outside the table."""
    if kind == "Pod":
        return usage_of_pod(obj)
    one = quantity_of("1")
    name = COUNTED.get(kind)
    if name is None:
        return {OBJECTS + resource: one} if resource else {}
    usage: Amounts = {f"count/{name}": one} if "." in name else {f"count/{name}": one, name: one}
    spec = section(obj, "spec")
    if kind == "Service":
        ports = sum(bool(port.get("nodePort")) for port in spec.get("ports") or ())
        usage[_OF_PORTS[0]] = quantity_of(str(ports))
        usage[_OF_PORTS[1]] = quantity_of("1" if spec.get("type") == "LoadBalancer" else "0")
    elif kind == "PersistentVolumeClaim":
        asked = quantity_of(str(section(section(spec, "resources"), "requests").get("storage") or "0"))
        usage[OF_CLAIMS] = asked
        if of_class := spec.get("storageClassName"):
            usage[f"{of_class}{_CLASS}{OF_CLAIMS}"] = asked
            usage[f"{of_class}{_CLASS}persistentvolumeclaims"] = one
    return usage


def counts(quota: Object, kind: str, obj: Object) -> bool:
    """Return whether the quota covers the object; a quota with scopes covers pods only."""
    if kind == "Pod":
        return is_in_scope(quota, obj)
    spec = section(quota, "spec")
    return not spec.get("scopes") and not section(spec, "scopeSelector")


def usage_of_pod(pod: Object) -> Amounts:
    """Return the usage of a pod; one that has ended counts as an object only. During a resize the larger amounts count,
    of the request and of the node's allocation.
    """
    usage = pod_usage(_charged_spec(pod))
    return {COUNT: usage[COUNT]} if section(pod, "status").get("phase") in ENDED_PHASES else usage


def _charged_spec(pod: Object) -> Object:
    """Return the spec with the amounts that count (`PodRequests` and `PodLimits` with `UseStatusResources`)."""
    spec, status = counted_spec(pod), section(pod, "status")
    said = {each.get("name"): section(section(each, "resources"), "limits") for each in status.get(_STATUSES) or ()}
    # no status tells of limits: those of the spec count
    if not any(said.values()):
        return spec
    infeasible = is_infeasible(status)
    containers = [
        _limited(each, said.get(each.get("name")), infeasible=infeasible) for each in spec.get("containers") or ()
    ]
    return {**spec, "containers": containers}


def _limited(container: Object, actual: Object | None, *, infeasible: bool) -> Object:
    if not actual:
        return container
    resources = section(container, "resources")
    # an infeasible request is not charged: the node will not give it
    limits = largest(*([] if infeasible else [section(resources, "limits")]), actual)
    return {**container, "resources": {**resources, "limits": limits}}


def is_in_scope(quota: Object, pod: Object) -> bool:
    """Return whether the quota's scopes cover the pod."""
    spec = section(quota, "spec")
    listed: list[Object] = section(spec, "scopeSelector").get("matchExpressions") or []
    asked = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    return all(_matches(one, section(pod, "spec")) for one in (*asked, *listed))


def _matches(scope: Object, spec: Object) -> bool:
    name: str | None = scope.get("scopeName")
    if name == "PriorityClass":
        return _has_class(scope, spec.get("priorityClassName"))
    # Kubernetes means pods with a deadline, and not those that are being deleted
    if name in ("Terminating", "NotTerminating"):
        return (spec.get("activeDeadlineSeconds") is not None) == (name == "Terminating")
    if name in ("BestEffort", "NotBestEffort"):
        return (not _asks(spec)) == (name == "BestEffort")
    return False


def _has_class(scope: Object, name: str | None) -> bool:
    values = set[str | None](scope.get("values") or ())
    match scope.get("operator"):
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
        case _:
            return bool(name)


def _asks(spec: Object) -> bool:
    containers: list[Object] = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return any(section(one, "resources").get(part) for one in containers for part in ("requests", "limits"))


def quota_status(quota: Object, pods: Iterable[Object]) -> Object:
    """Return `hard` as in the spec, and the used amounts of the counted resources, summed over `pods`."""
    return used_status(quota, total_of(usage_of_pod(pod) for pod in pods if is_in_scope(quota, pod)))


def total_of(usages: Iterable[Amounts]) -> Amounts:
    """Return the sum, by name."""
    total: Amounts = {}
    for usage in usages:
        total = added(total, usage)
    return total


def used_status(quota: Object, total: Amounts) -> Object:
    """Return the quota's status with this total usage; entries that others count stay as they are."""
    hard: dict[str, str] = section(section(quota, "spec"), "hard")
    zero = quantity_of("0")
    used = {name: total.get(name, zero) for name in hard if is_counted(name)}
    said = section(section(quota, "status"), "used")
    # entries of others are kept, or each writer would drop the other's
    others = {name: said[name] for name in hard if name in said and name not in used}
    return {"hard": dict(hard), "used": {**others, **texts(used)}}


def is_counted(name: str) -> bool:
    """Return whether the users of the resource can be counted."""
    return name in _NAMES or name.startswith(PREFIXES) or _CLASS in name
