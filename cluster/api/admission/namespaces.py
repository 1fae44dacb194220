"""Namespaces: the label with their name, the finalizer, the phase, and namespaces that may not be deleted."""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.names import label_problem
from pumice.cluster.api.refusals import Cause, invalid_value
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
    spec: dict[str, Any] = namespace.setdefault("spec", {})
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
