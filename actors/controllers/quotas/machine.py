"""The status of ResourceQuotas, kept up with the pods of their namespaces (Kubernetes' quota controller).

Only the scheduler's plugin resourcequota asks what it says: the API refuses no pod for a quota. Of pods only what they
count is remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from actors.controllers.min_resources import Amounts
from actors.controllers.quotas.usage import is_in_scope, total_of, usage_of_pod, used_status
from actors.kube.merge_patch import diff_patch
from core.messages.commands import ApiRequest, UpdateStatus
from core.messages.replies import ApiReply
from core.objects.metadata import section
from storage.codec import pack

Object = dict[str, Any]
Name = tuple[str, str]

QUOTA: Final = "ResourceQuota"
USER: Final = "resourcequota-controller"


class QuotaMachine:
    """See `actors.runtime.reconciler.Machine`."""

    kinds = (QUOTA, "Pod")

    def __init__(self) -> None:
        self._quotas: dict[Name, Object] = {}
        self._pods: dict[str, dict[str, tuple[Object, Amounts]]] = {}  # by namespace and name: what scopes ask, and use
        self._stale: dict[Name, None] = {}

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """See `Machine`."""
        del revision
        name = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        if kind == QUOTA:
            self._quotas.pop(name, None)
            if not deleted:
                self._quotas[name] = obj
                self._stale[name] = None
        elif self._is_news(name, obj, deleted=deleted):
            self._stale |= {quota: None for quota in self._quotas if quota[0] == name[0]}

    def _is_news(self, name: Name, pod: Object, *, deleted: bool) -> bool:
        """Whether the pod counts otherwise than before."""
        held = self._pods.setdefault(name[0], {})
        before = held.pop(name[1], None)
        if deleted:
            return before is not None
        after = held[name[1]] = _counted(pod), usage_of_pod(pod)
        return before != after

    def step(self, now: float) -> Sequence[ApiRequest]:
        """See `Machine`."""
        del now
        stale, self._stale = sorted(self._stale), {}
        requests: list[ApiRequest] = []
        for name in stale:
            quota = self._quotas.get(name)
            if quota is None:
                continue
            pods = self._pods.get(name[0], {}).values()
            total = total_of(usage for pod, usage in pods if is_in_scope(quota, pod))
            patch = diff_patch(section(quota, "status"), used_status(quota, total))
            if patch:
                requests.append(UpdateStatus(QUOTA, *name, pack(patch), quota["metadata"]["resourceVersion"], USER))
        return requests

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:
        """See `Machine`: after a conflict the newer quota is on its way here."""
        del request, reply, now

    def next_due(self) -> float | None:
        """See `Machine`."""
        return None

    def running_timers(self) -> int:
        """See `Machine`."""
        return 0


def _counted(pod: Object) -> Object:
    """What of a pod the scopes of quotas ask about, in the pod's own form."""
    spec = section(pod, "spec")
    parts = ("activeDeadlineSeconds", "priorityClassName", "containers", "initContainers")
    return {"spec": {part: spec[part] for part in parts if part in spec}}
