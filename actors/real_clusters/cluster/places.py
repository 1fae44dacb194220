"""Where a real API server has what: the paths of objects by their kind, namespace and name."""

from __future__ import annotations

from typing import Final

from pumice.cluster.api.kinds import KINDS, Kind

EVENTS: Final = "Event"
QUEUE: Final = "Queue"
POD: Final = "Pod"
POD_GROUP: Final = "PodGroup"


def root(kind: Kind) -> str:
    """Of all that is of the kind's group and version."""
    return f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"


def collection(key: str, namespace: str) -> str:
    """Where objects of the kind are made."""
    kind = KINDS[key]
    return f"{root(kind)}/namespaces/{namespace}/{kind.plural}" if kind.namespaced else f"{root(kind)}/{kind.plural}"


def place(key: str, namespace: str, name: str, subresource: str = "") -> str:
    """Of one object, or a subresource of it."""
    found = f"{collection(key, namespace)}/{name}"
    return f"{found}/{subresource}" if subresource else found
