# SPDX-License-Identifier: Apache-2.0
"""Namespaces: the label with their name, the finalizer, the phase, and namespaces that may not be deleted."""

from __future__ import annotations

from typing import Final

from pumice.cluster.api import refusals
from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.kinds import KINDS, Kind
from pumice.cluster.api.names import label_problem
from pumice.cluster.api.object_tables import ObjectTables
from pumice.cluster.api.refusals import Cause, invalid_value
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object, section

LABEL: Final = "kubernetes.io/metadata.name"
_IMMORTAL: Final = ("default", "kube-system", "kube-public")


def initial_status(namespace: Object) -> None:
    """Set the phase of a new namespace to Active."""
    namespace["status"] = {"phase": "Active"}


def default(namespace: Object, _lookup: Lookup) -> None:
    """Add the label and the finalizer that Kubernetes' server adds."""
    meta = namespace["metadata"]
    labels: dict[str, str] = dict(meta.get("labels") or {})
    labels[LABEL] = meta["name"]
    meta["labels"] = labels
    spec: Object = namespace.setdefault("spec", {})
    spec.setdefault("finalizers", ["kubernetes"])


def validate(namespace: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a new namespace: its name must be a DNS label, since it becomes a part of other names."""
    name = namespace["metadata"]["name"]
    problem = label_problem(name)
    return [invalid_value("metadata.name", name, problem)] if problem else []


def validate_update(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed namespace: label and finalizer stay."""
    kept = section(old, "spec").get("finalizers") or ["kubernetes"]
    new["spec"] = {**section(new, "spec"), "finalizers": kept}
    default(new, lookup)
    return []


def forbid_delete(namespace: Object, _lookup: Lookup) -> str | None:
    """Return why a namespace of the cluster itself cannot be deleted, or None."""
    return "this namespace may not be deleted" if namespace["metadata"]["name"] in _IMMORTAL else None


# --- Namespaces


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
    cause: Object = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    refused.details["causes"] = [cause]
    return refused
