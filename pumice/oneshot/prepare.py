"""Making handed-in objects fit for a view: what the API fills in is filled in, and what it would refuse is named.

What comes out of a cluster (it has a uid) has been through admission and is taken as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from actors.api.admission import ADMISSION
from actors.api.admission.shapes.shapes import shape_problems
from actors.api.admission.stated_amounts import STATED
from actors.api.refusals import Cause
from actors.api.verbs.decoding import drop_nulls
from core.errors import QuantityError
from core.objects.metadata import parse_time, section
from core.state.view import View
from pumice.errors import InputError
from pumice.load.manifests import Loaded
from pumice.oneshot.between import Object, object_key

VALIDATED = ("Pod", "Node", *STATED)
"""Kinds that are validated; a PodGroup without a queue is no error here but a reason to stay pending."""


class GivenObjects:
    """What admission may look at: the objects that were handed in."""

    def __init__(self, objects: Iterable[Object]) -> None:
        self._by_name = {_identity(obj): obj for obj in objects}
        self._queues = self.all("Queue")
        defaults = [obj for obj in self.all("PriorityClass") if obj.get("globalDefault")]
        self._default_class = min(defaults, key=lambda obj: obj.get("value", 0), default=None)

    def all(self, kind: str, namespace: str | None = None) -> list[Object]:
        keys = sorted(key for key in self._by_name if key[0] == kind and namespace in (None, key[1]))
        return [self._by_name[key] for key in keys]

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return self._by_name.get((kind, namespace, name))

    def queues(self) -> list[Object]:
        return self._queues

    def children(self, parent: str) -> list[Object]:
        return [queue for queue in self._queues if section(queue, "spec").get("parent") == parent]

    def default_priority_class(self) -> Object | None:
        return self._default_class


def usable(loaded: Loaded) -> tuple[list[Object], list[InputError]]:
    """The objects that a view takes, as the API would hold them, and a problem for each of the others."""
    view, lookup = View(), GivenObjects(loaded.objects)
    taken, problems = list[Object](), list[InputError]()
    for given in loaded.objects:
        who = f"{given['kind']} {object_key(given).strip('/')}"
        obj, causes = admitted(given, lookup)
        if causes:
            problems.append(InputError("; ".join(causes), source=loaded.place_of(given), path=who))
            continue
        try:
            view.apply("ADDED", obj)
        except QuantityError as error:
            problems.append(InputError(str(error), source=loaded.place_of(given), path=who))
        else:
            taken.append(obj)
    return taken, problems


def admitted(given: Object, lookup: GivenObjects) -> tuple[Object, list[str]]:
    """The object with what its author left out, and what is wrong with it. A queue is open and weighs 1, a volume can
    be had.
    """
    kind: str = given["kind"]
    if causes := shape_problems(kind, given):
        return given, _said(causes)
    if problems := _time_problems(section(given, "metadata")):
        return given, problems
    if section(given, "metadata").get("uid"):
        return given, []
    obj: Object = copy.deepcopy(given)
    drop_nulls(obj)
    obj["metadata"]["uid"] = object_key(obj).strip("/").replace("/", "-")
    spec: dict[str, Any] = obj.setdefault("spec", {}) if kind in ADMISSION else {}
    status: dict[str, Any] = obj.setdefault("status", {}) if kind in ADMISSION else {}
    if kind == "Queue":
        status.setdefault("state", "Open")
        spec.setdefault("weight", 1)
    elif kind == "PodGroup":
        spec.setdefault("queue", "default")
    elif kind == "Pod":
        status.setdefault("phase", "Pending")
    elif kind == "PersistentVolume":  # where there is a cluster, its controller says so
        status.setdefault("phase", "Available")
    return obj, _complete(obj, lookup)


def _complete(obj: Object, lookup: GivenObjects) -> list[str]:
    """Defaults and rules of the kinds that are validated, as admission has them."""
    if obj["kind"] not in VALIDATED:
        return []
    rules = ADMISSION[obj["kind"]]
    status = copy.deepcopy(obj["status"])
    if rules.default is not None:
        rules.default(obj, lookup)
    obj["status"] = {**obj["status"], **status}
    forbidden = rules.forbid(obj, lookup) if rules.forbid is not None else None
    if forbidden:
        return [forbidden]
    causes = rules.validate(obj, lookup) if rules.validate is not None else []
    return _said(causes)


def _time_problems(metadata: dict[str, Any]) -> list[str]:
    """Times that cannot be read; the API makes them itself, so its admission has no rule for them."""
    found: list[str] = []
    for name in ("creationTimestamp", "deletionTimestamp"):
        try:
            parse_time(metadata.get(name))
        except (ValueError, TypeError, AttributeError):
            found.append(f"metadata.{name}: expected a time such as 2026-01-31T12:00:00Z, was {metadata[name]!r}")
    return found


def _said(causes: list[Cause]) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in causes]


def _identity(obj: Object) -> tuple[str, str, str]:
    metadata = section(obj, "metadata")
    return obj["kind"], str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
