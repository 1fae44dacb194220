# SPDX-License-Identifier: Apache-2.0
"""The status of ResourceQuotas, kept up to date with the objects of their namespaces (Kubernetes' quota controller).

The API refuses by it what would be too much (`cluster/api/admission/quotas.py`), and adds what it lets in itself. Of
objects only what they count is remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.kube.merge_patch import diff_patch
from pumice.cluster.kube.min_resources import Amounts
from pumice.cluster.kube.quota_usage import COUNTED, counts, total_of, usage_of, used_status
from pumice.cluster.machine import Machine
from pumice.core.messages.commands import ApiRequest, UpdateStatus
from pumice.core.objects.metadata import Object, section
from pumice.storage.codec import pack

Name = tuple[str, str]

QUOTA: Final = "ResourceQuota"
USER: Final = "resourcequota-controller"


class QuotaMachine(Machine):
    """Keeps the status of ResourceQuotas up to date with the objects of their namespaces."""

    kinds = (QUOTA, "Pod", *(kind for kind in COUNTED if kind != QUOTA))

    def __init__(self) -> None:
        self._quotas: dict[Name, Object] = {}
        self._held: dict[str, dict[Name, tuple[Object, Amounts]]] = {}  # by namespace: what scopes ask, and use
        self._stale: dict[Name, None] = {}

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        name = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        if kind == QUOTA:
            self._quotas.pop(name, None)
            if not deleted:
                self._quotas[name] = obj
                self._stale[name] = None
        if self._is_news(kind, name, obj, deleted=deleted):
            self._stale |= {quota: None for quota in self._quotas if quota[0] == name[0]}

    def _is_news(self, kind: str, name: Name, obj: Object, *, deleted: bool) -> bool:
        """Return whether the object counts otherwise than before."""
        held = self._held.setdefault(name[0], {})
        before = held.pop((kind, name[1]), None)
        if deleted:
            return before is not None
        after = held[kind, name[1]] = _counted(obj) if kind == "Pod" else {}, usage_of(kind, obj)
        return before != after

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        stale, self._stale = sorted(self._stale), {}
        requests: list[ApiRequest] = []
        for name in stale:
            quota = self._quotas.get(name)
            if quota is None:
                continue
            held = self._held.get(name[0], {}).items()
            total = total_of(usage for (kind, _), (obj, usage) in held if counts(quota, kind, obj))
            patch = diff_patch(section(quota, "status"), used_status(quota, total))
            if patch:
                requests.append(UpdateStatus(QUOTA, *name, pack(patch), quota["metadata"]["resourceVersion"], USER))
        return requests


def _counted(pod: Object) -> Object:
    """Return the fields of a pod that the scopes of quotas read, in the pod's own form."""
    spec = section(pod, "spec")
    parts = ("activeDeadlineSeconds", "priorityClassName", "containers", "initContainers")
    return {"spec": {part: spec[part] for part in parts if part in spec}}
