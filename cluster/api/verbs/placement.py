"""What a scheduler does to pods: binding and eviction (source: Kubernetes' `BindingREST`, Volcano's evictor)."""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api import refusals
from pumice.cluster.api.kinds import KINDS
from pumice.cluster.api.tables import Key, ObjectTables
from pumice.cluster.api.verbs.deletion import Deletion
from pumice.cluster.api.verbs.requests import RequestMoment
from pumice.core.messages.commands import BindPod, EvictPod, StatusCondition
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object, section

_PODS: Final = KINDS["Pod"]
_SCHEDULED: Final = StatusCondition("PodScheduled", "True")


class Placement:
    """Puts pods on nodes and takes them off. `bound`: how many it has put on a node so far."""

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
        spec: dict[str, Any] = pod["spec"]
        if request.uid and request.uid != pod["metadata"]["uid"]:
            return refusals.other_uid(_PODS, request.name, request.uid, pod["metadata"]["uid"])
        if why := _unbindable(pod, spec, request):
            return refusals.conflict(_PODS, request.name, why)
        if spec.get("nodeName") == request.node:
            return Accepted(self._tables.revision)
        meta: dict[str, Any] = dict(pod["metadata"])
        if request.annotations:
            meta["annotations"] = {**(meta.get("annotations") or {}), **request.annotations}
        status = dict(section(pod, "status"))
        set_condition(status, _SCHEDULED, moment.text)
        bound = {**pod, "metadata": meta, "spec": {**spec, "nodeName": request.node}, "status": status}
        self._tables.replace(key, record, bound, moment.user)
        self.bound += 1
        return Accepted(self._tables.revision)

    def evict(self, request: EvictPod, moment: RequestMoment) -> Accepted | Refused:
        """Write the conditions, then delete with the pod's own grace period; not when they were there already."""
        key = ("Pod", request.namespace, request.name)
        pod = self._tables.read(key)
        if pod is None:
            return refusals.not_found(_PODS, request.name)
        if request.uid and request.uid != pod["metadata"]["uid"]:
            return refusals.other_uid(_PODS, request.name, request.uid, pod["metadata"]["uid"])
        status: dict[str, Any] = pod.setdefault("status", {})
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


def set_condition(status: dict[str, Any], condition: StatusCondition, now: str) -> bool:
    """Write a condition by its type; False when it says the same already. The transition time moves with the status."""
    conditions: list[dict[str, Any]] = list(status.get("conditions") or ())
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


def _unbindable(pod: Object, spec: dict[str, Any], request: BindPod) -> str:
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {request.name} is being deleted, cannot be assigned to a host"
    node = spec.get("nodeName")
    if node and node != request.node:
        return f'pod {request.name} is already assigned to node "{node}"'
    return "pod has non-empty .spec.schedulingGates" if spec.get("schedulingGates") else ""
