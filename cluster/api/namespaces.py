"""Namespaces: whether they accept objects, and the form of a new one (source: NamespaceLifecycle)."""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api import refusals
from pumice.cluster.api.kinds import KINDS, Kind
from pumice.cluster.api.object_tables import ObjectTables
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object

NAMESPACE: Final = "Namespace"
FIRST: Final = ("default", "kube-system", "kube-public", "kube-node-lease", "volcano-system")
"""Those that a cluster has from its start, Volcano's among them."""

_ROW: Final = KINDS[NAMESPACE]


def new_namespace(name: str) -> Object:
    """Return a namespace as a client writes it."""
    return {"apiVersion": "v1", "kind": NAMESPACE, "metadata": {"name": name}}


def is_missing(tables: ObjectTables, namespace: str) -> bool:
    """Return whether the namespace does not exist."""
    return tables.get((NAMESPACE, "", namespace)) is None


def not_there(namespace: str) -> Refused:
    """Return the refusal for an object of a namespace that does not exist."""
    return refusals.not_found(_ROW, namespace)


def ending(tables: ObjectTables, kind: Kind, namespace: str, name: str) -> Refused | None:
    """Return the refusal for a new object in a namespace that is being deleted."""
    found = tables.shared((NAMESPACE, "", namespace))
    if found is None or "deletionTimestamp" not in found["metadata"]:
        return None
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    refused = refusals.forbidden(kind, name, why)
    cause: dict[str, Any] = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    refused.details["causes"] = [cause]
    return refused
