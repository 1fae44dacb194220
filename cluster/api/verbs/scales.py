"""How many pods the controller of a pod wants (source: the finders of Kubernetes' disruption controller)."""

from __future__ import annotations

from typing import Any

from pumice.cluster.api.fields import rows
from pumice.cluster.api.registry import Registry
from pumice.cluster.kube.budgets import Scale
from pumice.core.objects.metadata import Object, section


class Scales:
    """Looks controllers up in the store."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def of_pod(self, pod: Object) -> Scale | None:
        """The scale of its controller; a ReplicaSet's is its Deployment's, where it has one."""
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
        return found if found is not None and found["metadata"]["uid"] == reference["uid"] else None


def _scale(controller: Object) -> Scale:
    replicas: Any = section(controller, "spec").get("replicas")
    return Scale(controller["metadata"]["uid"], replicas if isinstance(replicas, int) else 1)
