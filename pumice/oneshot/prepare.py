"""Making handed-in objects fit for a view: what the API fills in is filled in, and what it would refuse is named.

What comes out of a cluster has been through its admission and is taken as it is (`pumice.actors.api.origin`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from pumice.actors.api.admission import ADMISSION, admission_of, pod_groups, queue_tree
from pumice.actors.api.admission.shapes.kind_shapes import shape_problems
from pumice.actors.api.admission.stated_amounts import STATED
from pumice.actors.api.kinds import kind_of
from pumice.actors.api.origin import is_recorded
from pumice.actors.api.refusals import Cause
from pumice.actors.api.verbs.decoding import without_nulls
from pumice.actors.api.verbs.loading import fill_loaded
from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import parse_time, section
from pumice.core.state.view import View
from pumice.errors import InputError
from pumice.load.manifests import Loaded
from pumice.oneshot.between import Object, object_key

Identity = tuple[str, str, str]
"""Kind, namespace and name; the kind as objects are stored by."""

CONTROLLED: Final = frozenset(
    (
        "Job",
        "Deployment",
        "ReplicaSet",
        "Job.batch",
        "StatefulSet",
        "DaemonSet",
        "ReplicationController",
        "JobFlow",
        "CronJob",
        "CronJob.batch",
    )
)
"""Kinds of which controllers make pods and PodGroups (see `pumice.oneshot.expand`)."""
VALIDATED: Final = ("Pod", "Node", *STATED, *CONTROLLED)
"""Kinds that are validated; of a PodGroup only its numbers (without a queue it stays pending), of a Queue only
where it stands.
"""


class GivenObjects:
    """What admission may look at: the objects that were handed in."""

    def __init__(self, objects: Iterable[Object]) -> None:
        self._by_name: dict[Identity, Object] = {}
        self._listed: dict[tuple[str, str | None], list[Object]] = {}
        for obj in objects:
            self._by_name[identity(obj)] = obj

    def put(self, obj: Object) -> None:
        """One more, or another state of one."""
        who = identity(obj)
        self._by_name[who] = obj
        if self._listed:
            self._listed.pop((who[0], None), None)
            self._listed.pop((who[0], who[1]), None)

    def all(self, kind: str, namespace: str | None = None) -> list[Object]:
        """Those of a kind by namespace and name. Found once: it is asked for every pod."""
        found = self._listed.get((kind, namespace))
        if found is None:
            keys = sorted(key for key in self._by_name if key[0] == kind and namespace in (None, key[1]))
            found = self._listed[kind, namespace] = [self._by_name[key] for key in keys]
        return found

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return self._by_name.get((kind, namespace, name))

    def queues(self) -> list[Object]:
        return self.all("Queue")

    def children(self, parent: str) -> list[Object]:
        return [queue for queue in self.queues() if section(queue, "spec").get("parent") == parent]

    def default_priority_class(self) -> Object | None:
        defaults = [obj for obj in self.all("PriorityClass") if obj.get("globalDefault")]
        return min(defaults, key=lambda obj: obj.get("value", 0), default=None)


def stored_as(obj: Object) -> str:
    """The kind under which an object is stored: a Job of Kubernetes is another one than Volcano's."""
    kind, version = obj["kind"], obj.get("apiVersion")
    return _key(version, kind) if version.__class__ is str and kind.__class__ is str else str(kind)


@lru_cache(maxsize=256)
def _key(version: str, kind: str) -> str:
    found = kind_of(version, kind)
    return found.key if found is not None else kind


def usable(
    loaded: Loaded, lookup: GivenObjects | None = None, advance: Callable[[int], None] = lambda _: None
) -> tuple[list[Object], list[InputError]]:
    """The objects that a view takes, as the API would hold them, and a problem for each of the others.

    `lookup`: what admission may look at, where that is more than they are; `advance` is told of each that is done.
    """
    view, lookup = View(), lookup or GivenObjects(loaded.objects)
    taken, problems = list[Object](), list[InputError]()
    for given in loaded.objects:
        who = f"{given['kind']} {object_key(given).strip('/')}"
        obj, causes = admitted(given, lookup)
        advance(1)
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
    """Return the object with what its author left out, and what is wrong with it. A queue is open and weighs 1, a
    volume can be had. What a cluster had is not judged.
    """
    kind = stored_as(given)
    if causes := shape_problems(kind, given):
        return given, _said(causes)
    if problems := _time_problems(section(given, "metadata")):
        return given, problems
    if section(given, "metadata").get("uid"):
        return given, []
    obj: Object = without_nulls(given)
    name = object_key(obj).strip("/")
    # what is made of it is called after its uid, which readers know by its form
    obj["metadata"]["uid"] = str(uuid5(NAMESPACE_URL, name)) if stored_as(obj) in CONTROLLED else name.replace("/", "-")
    if is_recorded(given):
        fill_loaded(obj, admission_of(kind), lookup)
        return obj, []
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


def completed(given: Object, lookup: GivenObjects) -> tuple[Object, list[str]]:
    """Another like it with the defaults of its kind, and what is wrong with it, whether it has been admitted or not."""
    obj: Object = without_nulls(given)
    obj |= {part: obj.get(part) or {} for part in ("spec", "status")}
    return obj, _complete(obj, lookup)


def _complete(obj: Object, lookup: GivenObjects) -> list[str]:
    """Defaults and rules of the kinds that are validated, as admission has them."""
    kind = stored_as(obj)
    if kind == "PodGroup":
        return _said(pod_groups.numbers(section(obj, "spec")))
    if kind == "Queue":
        return _said(queue_tree.parent_problems(obj, lookup))
    if kind not in VALIDATED:
        return []
    rules = ADMISSION[kind]
    status = without_nulls(obj["status"])
    if rules.default is not None:
        rules.default(obj, lookup)
    if rules.settle is not None and kind in CONTROLLED:
        rules.settle(obj, lookup, "")
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


def identity(obj: Object) -> Identity:
    """Who it is."""
    metadata = section(obj, "metadata")
    return stored_as(obj), str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
