"""Nodes and namespaces."""

from __future__ import annotations

from typing import Any, Final

from pumice.actors.gateway.tables.ages import age
from pumice.actors.gateway.tables.column import AGE, NAME, NONE, UNKNOWN, Printer, text
from pumice.actors.gateway.tables.words import name_of, spec_of, status_of
from pumice.cluster.api.fields import labels_of, rows
from pumice.core.objects.metadata import Object, section

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE: Final = "kubernetes.io/role"


def _node_cells(node: Object, now: float) -> list[Any]:
    status = status_of(node)
    info = section(status, "nodeInfo")
    return [
        name_of(node),
        _state(node),
        ",".join(sorted(_roles(node))) or NONE,
        age(node, now),
        info.get("kubeletVersion") or "",
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _state(node: Object) -> str:
    said = [one.get("status") for one in rows(status_of(node), "conditions") if one.get("type") == "Ready"]
    state = "Unknown" if not said else "Ready" if said[-1] == "True" else "NotReady"
    return f"{state},SchedulingDisabled" if spec_of(node).get("unschedulable") else state


def _roles(node: Object) -> set[str]:
    labels = labels_of(node)
    found = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return (found | {labels.get(_ROLE, "")}) - {""}


def _address(status: Object, wanted: str) -> str:
    found = (one.get("address", "") for one in rows(status, "addresses") if one.get("type") == wanted)
    return next(found, NONE)


def _namespace_cells(namespace: Object, now: float) -> list[Any]:
    return [name_of(namespace), status_of(namespace).get("phase") or "", age(namespace, now)]


NODES: Final = Printer(
    (
        NAME,
        text("Status", "Whether the node is ready, and whether pods may be bound to it."),
        text("Roles", "Roles given by labels."),
        AGE,
        text("Version", "The kubelet's version."),
        text("Internal-IP", "The first address inside the cluster.", wide=True),
        text("External-IP", "The first address outside the cluster.", wide=True),
        text("OS-Image", "The operating system.", wide=True),
        text("Kernel-Version", "The kernel.", wide=True),
        text("Container-Runtime", "The container runtime and its version.", wide=True),
    ),
    _node_cells,
)

NAMESPACES: Final = Printer((NAME, text("Status", "Active or Terminating."), AGE), _namespace_cells)
