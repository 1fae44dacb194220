"""How many objects there are of kinds that no controller counts, in the statuses of ResourceQuotas (`count/` and the
resource): kept with every request that makes or removes one or changes a quota.

Kubernetes' quota controller watches whatever is defined; here the tables know, and the quota controller leaves these
names alone (`cluster/kube/quota_usage.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.api.registry import Registry
from pumice.cluster.api.verbs.quotas import KIND, bounded
from pumice.cluster.kube.min_resources import texts
from pumice.cluster.kube.quota_usage import COUNTED, OBJECTS, counts
from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object, section
from pumice.core.quantity import quantity_of

USER: Final = "resourcequota-controller"


class ObjectCounts:
    """Keeps them for a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._tables = registry.tables

    def follow(self, changes: Sequence[Mutation]) -> None:
        """Bring the quotas up to date that these changes, of one request, are news for."""
        if not changes or not self._tables.count(KIND):
            return
        for namespace in dict.fromkeys(change.namespace for change in changes if _is_news(change)):
            for key in [(KIND, *name) for name, _ in self._tables.of_kind(KIND, namespace)]:
                self._count(key)

    def _count(self, key: tuple[str, str, str]) -> None:
        quota = self._tables.shared(key)
        if quota is None or not counts(quota, "", {}):
            return
        hard = section(section(quota, "spec"), "hard")
        present = {name: quantity_of(str(found)) for name in hard if (found := self._present(name, key[1])) is not None}
        used = section(section(quota, "status"), "used")
        news = {name: text for name, text in texts(bounded(quota, present)).items() if used.get(name) != text}
        if news:
            self._write(key, quota, {**used, **news})

    def _write(self, key: tuple[str, str, str], quota: Object, used: Object) -> None:
        record = self._tables.get(key)
        if record is not None:
            status = {**section(quota, "status"), "used": used}
            changed = {**quota, "metadata": dict(quota["metadata"]), "status": status}
            self._tables.replace(key, record, changed, USER, status_only=True)

    def _present(self, name: str, namespace: str) -> int | None:
        """How many objects a name counts; None when it is not for this place to say."""
        if not name.startswith(OBJECTS):
            return None
        resource = name.removeprefix(OBJECTS)
        for kind in self._registry.kinds.rows():
            if kind.resource == resource and kind.namespaced and kind.key not in COUNTED and kind.key != "Pod":
                return len(self._tables.of_kind(kind.key, namespace))
        return None


def _is_news(change: Mutation) -> bool:
    if change.kind == KIND:
        return change.type != "DELETED"
    return change.type != "MODIFIED" and change.kind not in COUNTED and change.kind != "Pod"
