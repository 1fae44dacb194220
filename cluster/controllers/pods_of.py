# SPDX-License-Identifier: Apache-2.0
"""Pods of an owner: made from its template, adopted by their labels, and the facts that controllers read of them.

Source: Kubernetes' `controller_utils`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

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

Label = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Belongs:
    """A test that picks an owner's children. `label`: one that all of them have; None where no label says so."""

    picks: Callable[[Object], bool]
    label: Label | None = None

    def __call__(self, child: Object) -> bool:
        """Return whether the object is a child of the owner, or would be."""
        return self.picks(child)


def by_selector(selector: Object | None) -> Belongs:
    """Return a test whether an object's labels match; an empty or invalid selector matches nothing."""
    try:
        read = label_selector(selector)
    except SelectorError:
        return Belongs(lambda _: False)
    only = (each for each in read.requirements if each.operator == "In" and len(each.values) == 1)
    label = next(((each.key, each.values[0]) for each in only), None)
    return Belongs(lambda obj: bool(selector) and read.matches(text_map(obj["metadata"].get("labels"))), label)


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


# --- Orphans

Key = tuple[str, str]
"""Namespace and name."""
Shelf = tuple[str, Label | None]
"""A namespace and a label; None: any object of the namespace, and the owners whose test has no label."""
V = TypeVar("V")


class Orphans:
    """Objects of one kind without a controller, and the tests of the owners that adopt it, in the order in which they
    came. They find each other by a label, and not by a walk over all: a cluster has thousands of plain pods and of
    Jobs, and none of the pods is for any of the Jobs.
    """

    def __init__(self) -> None:
        self._tests: dict[Key, Belongs] = {}
        self._orphans: dict[Key, Object] = {}
        self._tests_on: dict[Shelf, set[Key]] = {}
        self._orphans_on: dict[Shelf, set[Key]] = {}

    # --- owners

    def adopt_by(self, key: Key, belongs: Belongs) -> None:
        """Note the test of an owner that has come or changed."""
        _put(self._tests_on, key, _shelf(key, self._tests.get(key)), _shelf(key, belongs))
        self._tests[key] = belongs

    def lose_owner(self, key: Key) -> None:
        """Forget an owner that has gone."""
        _put(self._tests_on, key, _shelf(key, self._tests.pop(key, None)), set())

    def test_of(self, key: Key) -> Belongs | None:
        """Return the test of an owner; None for one that adopts nothing."""
        return self._tests.get(key)

    # --- orphans

    def note(self, key: Key, orphan: Object) -> list[Key]:
        """Keep an object without a controller as it is now, and return the owners to which it belongs."""
        shelves = _shelves(key, orphan)
        _put(self._orphans_on, key, _shelves(key, self._orphans.get(key)), shelves)
        self._orphans[key] = orphan
        near = (owner for shelf in shelves for owner in self._tests_on.get(shelf, ()))
        return _in_order({owner for owner in near if self._tests[owner](orphan)}, self._tests)

    def lose(self, key: Key) -> None:
        """Forget an object that has gone, or has a controller now."""
        _put(self._orphans_on, key, _shelves(key, self._orphans.pop(key, None)), set())

    def take(self, owner: Key) -> list[Object]:
        """Take the orphans that belong to an owner: each is taken once, until it changes."""
        belongs, taken = self._tests[owner], list[Object]()
        (shelf,) = _shelf(owner, belongs)
        near = self._orphans_on.get(shelf, ())
        for key in _in_order({key for key in near if belongs(self._orphans[key])}, self._orphans):
            taken.append(self._orphans[key])
            self.lose(key)
        return taken


def _shelf(owner: Key, belongs: Belongs | None) -> set[Shelf]:
    return set() if belongs is None else {(owner[0], belongs.label)}


def _shelves(key: Key, orphan: Object | None) -> set[Shelf]:
    if orphan is None:
        return set()
    return {(key[0], None), *((key[0], label) for label in text_map(orphan["metadata"].get("labels")).items())}


def _put(shelves: dict[Shelf, set[Key]], key: Key, before: set[Shelf], after: set[Shelf]) -> None:
    for shelf in before - after:
        shelves[shelf].discard(key)
        if not shelves[shelf]:
            del shelves[shelf]
    for shelf in after - before:
        shelves.setdefault(shelf, set()).add(key)


def _in_order(found: Collection[Key], every: Mapping[Key, V]) -> list[Key]:
    """Return what was found in the order of all: that of a set is another one under each hash seed."""
    return [*found] if len(found) <= 1 else [key for key in every if key in found]
