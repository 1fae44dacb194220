# SPDX-License-Identifier: Apache-2.0
"""Binding and eviction of pods, within their budgets. Source: Kubernetes' `BindingREST`, Volcano's evictor."""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api import refusals
from pumice.cluster.api.kinds import KINDS
from pumice.cluster.api.object_tables import Key, ObjectTables
from pumice.cluster.api.registry import FoundObject, Registry
from pumice.cluster.api.verbs.deletion import Deletion
from pumice.cluster.api.verbs.requests import RequestMoment
from pumice.cluster.kube.budgets import Scale, budget_status, covers, is_ready, selector_of
from pumice.core.messages.commands import BindPod, EvictPod, RequestEviction, StatusCondition
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object, rows, section

_PODS: Final = KINDS["Pod"]
_SCHEDULED: Final = StatusCondition("PodScheduled", "True")


class Placement:
    """Binds pods to nodes and evicts them. `bound`: how many it has bound so far."""

    def __init__(self, tables: ObjectTables, deletion: Deletion) -> None:
        self.bound = 0
        self._tables = tables
        self._deletion = deletion

    def bind(self, request: BindPod, moment: RequestMoment) -> Accepted | Refused:
        """Set the node and PodScheduled=True. The same node again changes nothing; another one is a conflict.

        As in Kubernetes the answer does not bring the pod along.
        """
        key = ("Pod", request.namespace, request.name)
        record = self._tables.get(key)
        if record is None:
            return refusals.not_found(_PODS, request.name)
        pod = self._tables.seen(record)
        spec: Object = pod["spec"]
        if request.uid and request.uid != pod["metadata"]["uid"]:
            return refusals.other_uid(_PODS, request.name, request.uid, pod["metadata"]["uid"])
        if why := _unbindable(pod, spec, request):
            return refusals.conflict(_PODS, request.name, why)
        if spec.get("nodeName") == request.node:
            return Accepted(self._tables.revision)
        # watchers share what `seen` returns: each part that changes is copied
        meta: Object = dict(pod["metadata"])
        if request.annotations:
            meta["annotations"] = {**(meta.get("annotations") or {}), **request.annotations}
        status = dict(section(pod, "status"))
        set_condition(status, _SCHEDULED, moment.text)
        bound = {**pod, "metadata": meta, "spec": {**spec, "nodeName": request.node}, "status": status}
        self._tables.replace(key, record, bound, moment.user)
        self.bound += 1
        return Accepted(self._tables.revision)

    def evict(self, request: EvictPod, moment: RequestMoment) -> Accepted | Refused:
        """Write the conditions, then delete with the pod's own grace period; nothing when the conditions exist
        already.
        """
        key = ("Pod", request.namespace, request.name)
        pod = self._tables.read(key)
        if pod is None:
            return refusals.not_found(_PODS, request.name)
        if request.uid and request.uid != pod["metadata"]["uid"]:
            return refusals.other_uid(_PODS, request.name, request.uid, pod["metadata"]["uid"])
        status: Object = pod.setdefault("status", {})
        changed = [set_condition(status, condition, moment.text) for condition in request.conditions]
        if request.conditions and not any(changed):
            return Accepted(self._tables.revision, self._blob(key))
        if request.conditions:
            self._tables.put_again(key, pod, moment.user)
        blob = self._deletion.delete(key, pod, None, moment)
        return Accepted(self._tables.revision, blob)

    def _blob(self, key: Key) -> bytes:
        record = self._tables.get(key)
        return b"" if record is None else record.blob


def set_condition(status: Object, condition: StatusCondition, now: str) -> bool:
    """Write a condition by its type; False without a difference. The transition time changes with the status."""
    conditions: list[Object] = list(status.get("conditions") or ())
    written = {"type": condition.type, "status": condition.status, "lastTransitionTime": now}
    if condition.reason:
        written["reason"] = condition.reason
    if condition.message:
        written["message"] = condition.message
    for index, old in enumerate(conditions):
        if old.get("type") == condition.type:
            if old.get("status") == condition.status:
                written["lastTransitionTime"] = old.get("lastTransitionTime", now)
            if all(old.get(name) == written.get(name) for name in ("status", "reason", "message")):
                return False
            conditions[index] = written
            break
    else:
        conditions.append(written)
    status["conditions"] = conditions
    return True


def _unbindable(pod: Object, spec: Object, request: BindPod) -> str:
    # the order of `setPodNodeAndMetadata` (`pkg/registry/core/pod/storage/storage.go`): the first reason is the answer
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {request.name} is being deleted, cannot be assigned to a host"
    node = spec.get("nodeName")
    if node and node != request.node:
        return f'pod {request.name} is already assigned to node "{node}"'
    return "pod has non-empty .spec.schedulingGates" if spec.get("schedulingGates") else ""


# --- Evictions that budgets allow
# Source: Kubernetes' `EvictionREST`.

# --- The scale of a controller
# Source: the finders of Kubernetes' disruption controller.


class Scales:
    """Reads the scales of controllers from the store."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def of_pod(self, pod: Object) -> Scale | None:
        """Return the scale of the pod's controller; a ReplicaSet's is its Deployment's, where it has one."""
        found = self._controller(pod)
        if found is not None and found["kind"] == "ReplicaSet":
            return _scale(self._controller(found) or found)
        return None if found is None else _scale(found)

    def _controller(self, obj: Object) -> Object | None:
        meta = obj["metadata"]
        reference = next((each for each in rows(meta, "ownerReferences") if each.get("controller")), None)
        if reference is None:
            return None
        kind = self._registry.kinds.by_type(reference.get("apiVersion"), reference.get("kind"))
        if kind is None or not kind.scale:
            return None
        found = self._registry.lookup.get(kind.key, meta["namespace"] if kind.namespaced else "", reference["name"])
        # a namesake that was made since is another controller
        return found if found is not None and found["metadata"]["uid"] == reference["uid"] else None


def _scale(controller: Object) -> Scale:
    replicas: Any = section(controller, "spec").get("replicas")
    return Scale(controller["metadata"]["uid"], replicas if isinstance(replicas, int) else 1)


_BUDGETS: Final = KINDS["PodDisruptionBudget"]
_EVICTED: Final = StatusCondition("DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting")
_UNPROTECTED: Final = ("Pending", "Succeeded", "Failed")
_COUNTED: Final = {"disruptionsAllowed", "currentHealthy", "desiredHealthy"}
_BLOCKED: Final = "Cannot evict pod as it would violate the pod's disruption budget."


class Eviction:
    """Deletes pods as long as budgets allow it."""

    def __init__(self, registry: Registry, deletion: Deletion) -> None:
        self._registry = registry
        self._tables = registry.tables
        self._deletion = deletion
        self._scales = Scales(registry)

    def request(self, request: RequestEviction, moment: RequestMoment) -> Accepted | Refused:
        """Evict a pod, or return which budget forbids it (429) or that two of them cover it (500)."""
        found = self._registry.existing("Pod", request.namespace, request.name)
        if isinstance(found, Refused):
            return found
        uid: str = found.obj["metadata"]["uid"]
        if request.uid and request.uid != uid:
            return refusals.other_uid(_PODS, request.name, request.uid, uid)
        if _protected(found.obj):
            refused = self._ask_budget(found, moment, dry_run=request.dry_run)
            if refused is not None:
                return refused
        if request.dry_run:
            return self._registry.unchanged(found.key)
        # before the deletion, as in `EvictionREST`: watchers see why the pod goes
        set_condition(found.obj.setdefault("status", {}), _EVICTED, moment.text)
        self._tables.put_again(found.key, found.obj, moment.user)
        blob = self._deletion.delete(found.key, found.obj, request.grace_period_s, moment)
        return Accepted(self._tables.revision, blob, uid=uid)

    def _ask_budget(self, pod: FoundObject, moment: RequestMoment, *, dry_run: bool) -> Refused | None:
        budgets = [
            each for each in self._registry.lookup.all(_BUDGETS.key, pod.key[1]) if covers(selector_of(each), pod.obj)
        ]
        if len(budgets) > 1:
            why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            return Refused(500, "InternalError", why)
        if not budgets:
            return None
        budget = budgets[0]
        status = self._status(budget, moment)
        if not is_ready(pod.obj) and _unready_may_go(budget, status):
            return None
        if status["disruptionsAllowed"] <= 0:
            return _blocked(budget, status)
        if not dry_run:
            self._spend(budget, status, pod.key[2], moment)
        return None

    def _status(self, budget: Object, moment: RequestMoment) -> Object:
        """Return the budget's status from the disruption controller; counted here when that controller has not seen it
        yet.
        """
        status = section(budget, "status")
        if (status.get("observedGeneration") or 0) >= budget["metadata"]["generation"] and status.keys() >= _COUNTED:
            return dict(status)
        # Kubernetes' `checkAndDecrement` answers 429 here; counting spares the client another try
        pods = self._registry.lookup.all(_PODS.key, budget["metadata"]["namespace"])
        selector = selector_of(budget)
        covered = [each for each in pods if covers(selector, each)]
        return budget_status(budget, covered, self._scales.of_pod, moment.now)

    def _spend(self, budget: Object, status: Object, pod: str, moment: RequestMoment) -> None:
        """Note that the pod is leaving, so that the next request finds one disruption fewer."""
        meta = budget["metadata"]
        status["disruptionsAllowed"] -= 1
        status["disruptedPods"] = {**section(status, "disruptedPods"), pod: moment.text}
        key = (_BUDGETS.key, meta["namespace"], meta["name"])
        written = {**budget, "metadata": dict(meta), "status": status}
        self._tables.put_again(key, written, moment.user)


def _protected(pod: Object) -> bool:
    """Return whether the pod's eviction would disrupt a budget."""
    # Kubernetes' `canIgnorePDB`
    return "deletionTimestamp" not in pod["metadata"] and section(pod, "status").get("phase") not in _UNPROTECTED


def _unready_may_go(budget: Object, status: Object) -> bool:
    if section(budget, "spec").get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    wanted: int = status["desiredHealthy"]
    # IfHealthyBudget: an unready pod may go while enough others are healthy
    return 0 < wanted <= int(status["currentHealthy"])


def _blocked(budget: Object, status: Object) -> Refused:
    name = budget["metadata"]["name"]
    needs, has = status["desiredHealthy"], status["currentHealthy"]
    if has <= needs:
        why = f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
    else:
        why = f"The disruption budget {name} does not allow evicting pods currently"
    return refusals.too_many_requests(_BUDGETS, name, _BLOCKED, "DisruptionBudget", why)
