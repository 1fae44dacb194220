# SPDX-License-Identifier: Apache-2.0
"""Pods of an owner: made from its template, adopted by their labels, and the facts that controllers read of them.

Source: Kubernetes' `controller_utils`.
"""

from __future__ import annotations

from collections.abc import Callable

from pumice.cluster.kube.budgets import is_ready
from pumice.core.kube.selectors import SelectorError, label_selector
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.commands import Patch
from pumice.core.objects.metadata import (
    Object,
    OwnerReference,
    conditions_of,
    controlling_owner,
    parse_time,
    rows,
    section,
    text_map,
)
from pumice.storage.codec import pack


def pod_from(template: Object, owner: Object, name: str = "") -> Object:
    """Return a pod of an owner; the api names it after the owner where it has no name."""
    meta, said = owner["metadata"], section(template, "metadata")
    named = {"name": name} if name else {"generateName": f"{meta['name']}-"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **named,
            "namespace": meta["namespace"],
            "labels": dict(text_map(said.get("labels"))),
            "annotations": dict(text_map(said.get("annotations"))),
            "ownerReferences": [reference(owner)],
            **({"finalizers": list(said["finalizers"])} if said.get("finalizers") else {}),
        },
        "spec": dict(section(template, "spec")),
    }


def reference(owner: Object) -> Object:
    """Return the reference by which an owner controls an object."""
    meta = owner["metadata"]
    named = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    return {**named, "controller": True, "blockOwnerDeletion": True}


def phase(pod: Object) -> str:
    """Return the pod's phase; Pending where the status has none."""
    return section(pod, "status").get("phase") or "Pending"


def is_leaving(obj: Object) -> bool:
    """Return whether the object has been deleted and still exists."""
    return "deletionTimestamp" in obj["metadata"]


def is_active(pod: Object) -> bool:
    """Return whether the pod has not ended and is not being deleted."""
    return phase(pod) not in ENDED_PHASES and not is_leaving(pod)


def ready_at(pod: Object) -> float | None:
    """Return since when the pod is ready, in seconds since the epoch; None when it is not."""
    if not is_ready(pod):
        return None
    since = next((each.get("lastTransitionTime") for each in conditions_of(pod) if each.get("type") == "Ready"), None)
    try:
        return parse_time(since)
    except (ValueError, TypeError, AttributeError):
        return 0.0  # another client wrote it; an unreadable time is long past


def available_at(pod: Object, least_s: float) -> float | None:
    """Return when the pod has been, or will have been, ready for `least_s` seconds; None when it is not ready."""
    since = ready_at(pod)
    return None if since is None else since + least_s


def least_missed(pod: Object) -> tuple[bool, int, bool, float, str]:
    """Return the sort key for surplus pods: unbound, not running, not ready, ready for a short time and new pods go
    first.

    Source: Kubernetes' `ActivePods`.
    """
    placed = bool(section(pod, "spec").get("nodeName"))
    state = {"Pending": 0, "Unknown": 1}.get(phase(pod), 2)
    since = ready_at(pod)
    return placed, state, since is not None, -(since or 0.0), pod["metadata"]["name"]


# --- Adoption: pods that belong to an owner by their labels
# Source: Kubernetes' `controller_ref_manager`.

Belongs = Callable[[Object], bool]


def by_selector(selector: Object | None) -> Belongs:
    """Return a test whether an object's labels match; an empty or invalid selector matches nothing."""
    try:
        read = label_selector(selector)
    except SelectorError:
        return lambda _: False
    return lambda obj: bool(selector) and read.matches(text_map(obj["metadata"].get("labels")))


def is_controlled(obj: Object) -> bool:
    """Return whether the object has a controller, of any kind."""
    return controlling_owner(obj) is not None


def controller_of(obj: Object, owner_type: tuple[str, str]) -> OwnerReference | None:
    """Return the reference to the object's controller, if that is of this apiVersion and kind."""
    owner = controlling_owner(obj)
    return owner if owner is not None and (owner.get("apiVersion"), owner["kind"]) == owner_type else None


def adoption(owner: Object, kind: str, child: Object, user: str) -> Patch:
    """Return the patch by which the owner adopts the object."""
    return _references(kind, child, [*rows(child["metadata"], "ownerReferences"), reference(owner)], user)


def release(owner: Object, kind: str, child: Object, user: str) -> Patch:
    """Release the object from its owner."""
    left = [each for each in child["metadata"]["ownerReferences"] if each["uid"] != owner["metadata"]["uid"]]
    return _references(kind, child, left, user)


def _references(kind: str, child: Object, references: list[Object], user: str) -> Patch:
    meta = child["metadata"]
    patch = {"metadata": {"uid": meta["uid"], "ownerReferences": references or None}}
    return Patch(kind, meta["namespace"], meta["name"], pack(patch), user=user)
