# SPDX-License-Identifier: Apache-2.0
"""The status of ResourceQuotas, kept up to date with the objects of their namespaces (Kubernetes' quota controller).

The API refuses by it what would be too much (`cluster/api/admission/quotas.py`), and adds what it lets in itself. Of
objects only what they count is remembered.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from pumice.cluster.kube.merge_patch import diff_patch
from pumice.cluster.kube.min_resources import Amounts, added
from pumice.cluster.kube.quota_usage import COUNTED, counts, total_of, usage_of, used_status
from pumice.cluster.machine import Machine
from pumice.core.messages.commands import ApiRequest, UpdateStatus
from pumice.core.objects.metadata import Object, section
from pumice.storage.codec import pack

Name = tuple[str, str]

QUOTA: Final = "ResourceQuota"
USER: Final = "resourcequota-controller"


@dataclass(slots=True)
class AlikeObjects:
    """So many objects of a namespace of which the same is counted: a namespace has thousands of pods, and few sorts.
    `asked`: what scopes ask about.
    """

    kind: str
    asked: Object
    usage: Amounts
    count: int = 0

    def total(self) -> Amounts:
        """Return what all of them use."""
        total, double, left = Amounts(), self.usage, self.count
        while left:
            if left & 1:
                total = added(total, double)
            double, left = added(double, double), left >> 1
        return total


class QuotaMachine(Machine):
    """Keeps the status of ResourceQuotas up to date with the objects of their namespaces."""

    kinds = (QUOTA, "Pod", *(kind for kind in COUNTED if kind != QUOTA))

    def __init__(self) -> None:
        self._quotas: dict[Name, Object] = {}
        self._held: dict[str, dict[Name, Hashable]] = {}  # by namespace: the sort of each object
        self._sorts: dict[str, dict[Hashable, AlikeObjects]] = {}  # and all that is counted of objects alike
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
        held, sorts = self._held.setdefault(name[0], {}), self._sorts.setdefault(name[0], {})
        before = held.pop((kind, name[1]), None)
        if before is not None:
            sorts[before].count -= 1
            if not sorts[before].count:
                del sorts[before]
        if deleted:
            return before is not None
        asked, usage = _counted(obj) if kind == "Pod" else {}, usage_of(kind, obj)
        after = held[kind, name[1]] = kind, pack(asked), tuple(usage.items())
        sorts.setdefault(after, AlikeObjects(kind, asked, usage)).count += 1
        return before != after

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        stale, self._stale = sorted(self._stale), {}
        requests: list[ApiRequest] = []
        for name in stale:
            quota = self._quotas.get(name)
            if quota is None:
                continue
            sorts = self._sorts.get(name[0], {}).values()
            total = total_of(each.total() for each in sorts if counts(quota, each.kind, each.asked))
            patch = diff_patch(section(quota, "status"), used_status(quota, total))
            if patch:
                requests.append(UpdateStatus(QUOTA, *name, pack(patch), quota["metadata"]["resourceVersion"], USER))
        return requests


def _counted(pod: Object) -> Object:
    """Return the fields of a pod that the scopes of quotas read, in the pod's own form."""
    spec = section(pod, "spec")
    parts = ("activeDeadlineSeconds", "priorityClassName", "containers", "initContainers")
    return {"spec": {part: spec[part] for part in parts if part in spec}}
