# SPDX-License-Identifier: Apache-2.0
"""JSON objects, such as Kubernetes' objects and their parts, and the metadata that every Kubernetes object has.

The readers rely on no field: an absent or null one is empty. Objects that others read as well must not be changed.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from sys import intern
from typing import Any, Final, NotRequired, TypedDict, TypeGuard, TypeVar

Object = dict[str, Any]
"""A JSON object."""
H = TypeVar("H")

COMPOUND: Final = frozenset((dict, list))
"""Classes of values that hold others. Asked of thousands of values that hold none, this is cheaper than a call."""

# One for all, so that asking for an absent part allocates nothing; no reader may write to it.
_EMPTY: Object = {}
_DESCRIBES = ("uid", "labels", "annotations", "creationTimestamp")


def is_mapping(value: object) -> TypeGuard[Object]:
    """Return whether the value is a mapping, as decoding leaves them."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return whether the value is a list."""
    return isinstance(value, list)


def mapping(value: object) -> Object:
    """Return a value that may be of any type if it is a mapping, else an empty one."""
    return value if is_mapping(value) else _EMPTY


def section(obj: Object, name: str) -> Object:
    """Return the mapping under `name`, empty when absent or null."""
    return obj.get(name) or _EMPTY


def rows(obj: Object, name: str) -> list[Object]:
    """Return the list of mappings under `name`, a new empty one when absent or null."""
    return obj.get(name) or []


def objects_in(section_: Object, key: str) -> list[Object]:
    """Return the list of mappings under a key; an object that nothing has checked may have something else there."""
    found = section_.get(key)
    return [each for each in found if is_mapping(each)] if is_list(found) else []


def containers_of(pod_spec: Object) -> list[Object]:
    """Return containers and init containers of a pod spec."""
    # Most pods have no init containers: then the list itself is returned, and nothing is copied.
    containers, first = rows(pod_spec, "containers"), rows(pod_spec, "initContainers")
    return [*containers, *first] if first else containers


def labels_of(obj: Object) -> dict[str, str]:
    """Return metadata.labels."""
    return section(section(obj, "metadata"), "labels")


def annotations_of(obj: Object) -> dict[str, str]:
    """Return metadata.annotations."""
    return section(section(obj, "metadata"), "annotations")


class OwnerReference(TypedDict):
    """An entry of metadata.ownerReferences."""

    apiVersion: NotRequired[str]
    kind: str
    name: str
    uid: str
    controller: NotRequired[bool]


class ObjectCondition(TypedDict, total=False):
    """An entry of status.conditions."""

    type: str
    status: str
    reason: str
    message: str
    lastTransitionTime: str


def owners_of(obj: Object) -> Sequence[OwnerReference]:
    """Return metadata.ownerReferences."""
    return section(obj, "metadata").get("ownerReferences") or ()


def controlling_owner(obj: Object) -> OwnerReference | None:
    """Return the reference to the object's controller: one owner at most is that."""
    for each in owners_of(obj):  # asked at every change of every child: a generator costs twice as much
        if each.get("controller"):
            return each
    return None


def conditions_of(obj: Object) -> Sequence[ObjectCondition]:
    """Return status.conditions."""
    return section(obj, "status").get("conditions") or ()


def has_condition(obj: Object, kind: str) -> bool:
    """Return whether the object's condition of that type is True."""
    return any(each.get("type") == kind and each.get("status") == "True" for each in conditions_of(obj))


def text_map(value: Any) -> dict[str, str]:
    """Return labels or annotations as a plain dict, empty when absent."""
    return value or {}


def interned(text: str) -> str:
    """Return the one copy of a text that many objects repeat; a value of another type is returned as it is."""
    # intern() raises TypeError for subclasses of str, so their copies are kept as they are.
    return intern(text) if type(text) is str else text


@lru_cache(maxsize=8192)
def alike(value: H) -> H:
    """Return one shared object for all recent equal ones: the values that are kept for every object are of few
    sorts.
    """
    return value


def key_of(namespace: str, name: str) -> str:
    """Return `namespace/name`, the id of jobs and the sort key of pods."""
    return f"{namespace}/{name}"


def object_key(obj: Object) -> str:
    """Return the key of an object of a namespaced kind; an absent namespace is the default one."""
    meta: Object = obj.get("metadata") or _EMPTY
    # Kubernetes puts an object without a namespace into `default`.
    return f"{meta.get('namespace') or 'default'}/{meta.get('name') or ''}"


def same_metadata(before: Object, after: Object) -> bool:
    """Return whether two objects of one name are the same object with equal metadata; versions and deletion times may
    differ.
    """
    was, meta = before.get("metadata") or _EMPTY, after.get("metadata") or _EMPTY
    return [*map(was.get, _DESCRIBES)] == [*map(meta.get, _DESCRIBES)]


def same_section(before: Object, after: Object, name: str) -> bool:
    """Return whether a section of two objects is equal; after a change elsewhere it is mostly the same object."""
    was, told = before.get(name), after.get(name)
    # Identity first: after a change elsewhere both are one object, and a spec has hundreds of values to compare.
    return was is told or (was or _EMPTY) == (told or _EMPTY)


# Times repeat: a job's pods are made in the same seconds, and a pod is read again with every change.
@lru_cache(maxsize=65536)
def parse_time(text: str | None) -> float:
    """Return seconds since the epoch of an RFC 3339 time; 0.0 for an absent one (Go's zero time sorts first as
    well).
    """
    if not text:
        return 0.0
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    # UTC, and not the zone of the machine, on which no decision may depend.
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def format_time(seconds: float) -> str:
    """Return a time as RFC 3339 in UTC, whole seconds, as Kubernetes writes times."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_bool(text: str) -> bool | None:
    """Read a boolean like Go's strconv.ParseBool; None where Go returns an error."""
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if text in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    return None
