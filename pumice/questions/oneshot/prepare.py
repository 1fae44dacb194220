# SPDX-License-Identifier: Apache-2.0
"""Preparation of input objects for a view: the API's defaults are filled in, and objects that it would refuse are
named.

What comes out of a cluster has been through its admission and is taken as it is (`cluster.api.origin`). All else is
judged by an API's store of its own, so that no command can judge otherwise than `pumice run` and HTTP do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from pumice.cluster.api.admission import ADMISSION, admission_of, pod_groups
from pumice.cluster.api.admission.amounts import STATED
from pumice.cluster.api.admission.limit_ranges import own_copy
from pumice.cluster.api.definitions.volcano import fill_in_defaults, volcano_problems
from pumice.cluster.api.kinds import KINDS, MAKERS
from pumice.cluster.api.origin import is_recorded
from pumice.cluster.api.refusals import Cause
from pumice.cluster.api.schema.field_types import key_problems
from pumice.cluster.api.verbs.loading import fill_loaded
from pumice.cluster.api.verbs.requests import without_nulls
from pumice.cluster.kernel.intake import refusals_of
from pumice.config.errors import RequestError
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object, section
from pumice.core.state.view import View
from pumice.errors import InputError
from pumice.load.manifests import Loaded
from pumice.questions.oneshot.between import object_key
from pumice.questions.oneshot.identity import Identity, identity, stored_as

VALIDATED: Final = ("Pod", "Node", *STATED, *MAKERS)
"""Kinds that are validated when controllers make them; of a PodGroup only its numbers."""


@dataclass(slots=True)
class Usable:
    """Objects that a view takes; a problem for each of the others; and remarks on the taken ones."""

    taken: list[Object] = field(default_factory=list[Object])
    problems: list[InputError] = field(default_factory=list[InputError])
    notes: list[str] = field(default_factory=list[str])


class GivenObjects:
    """Objects that admission may look at: the input's."""

    def __init__(self, objects: Iterable[Object]) -> None:
        self._by_name: dict[Identity, Object] = {}
        self._listed: dict[tuple[str, str | None], list[Object]] = {}
        for obj in objects:
            self._by_name[identity(obj)] = obj

    def put(self, obj: Object) -> None:
        """Add an object, or another state of one."""
        who = identity(obj)
        self._by_name[who] = obj
        if self._listed:
            self._listed.pop((who[0], None), None)
            self._listed.pop((who[0], who[1]), None)

    def all(self, kind: str, namespace: str | None = None) -> list[Object]:
        """Return those of a kind by namespace and name. Found once: it is asked for every pod."""
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


def waits_for_its_queue(given: Object, refused: Refused) -> bool:
    """Return whether a PodGroup is refused for its queue alone, which does not exist or is not open.

    Such a group is kept, for its queue may go after it came: then that is what it waits for.
    """
    causes = refused.details.get("causes") or ()
    if given["kind"] != "PodGroup" or not isinstance(section(given, "spec").get("queue", ""), str):
        return False
    return bool(causes) and all(cause["field"] == "spec.queue" for cause in causes)


def usable(
    loaded: Loaded,
    lookup: GivenObjects | None = None,
    advance: Callable[[int], None] = lambda _: None,
    beside: Sequence[Object] = (),
) -> Usable:
    """Return the objects that a view takes, as the API would hold them, and a problem for each of the others.

    `lookup`: what admission may look at, where that is more than they are; `advance` is called for each that is done;
    `beside`: what is there already.
    """
    view, lookup = View(), lookup or GivenObjects(loaded.objects)
    found = Usable()
    for given, answer in zip(loaded.objects, refusals_of(loaded.objects, beside), strict=True):
        advance(1)
        who = f"{given['kind']} {object_key(given).strip('/')}"
        problem = "" if answer is None else answer.message
        if answer is not None and waits_for_its_queue(given, answer):
            place = ": ".join(part for part in (loaded.place_of(given), who) if part)
            found.notes.append(f"{place}: {problem}; it is kept, to wait for its queue")
            problem = ""
        obj = given if problem else prepared(given, lookup)
        if not problem:
            try:
                view.apply("ADDED", obj)
            except RequestError as error:
                problem = str(error)
        if problem:
            found.problems.append(InputError(problem, source=loaded.place_of(given), path=who))
        else:
            found.taken.append(obj)
    return found


def prepared(given: Object, lookup: GivenObjects) -> Object:
    """Return the object with what its author left out. A queue is open and weighs 1, a volume can be had."""
    if section(given, "metadata").get("uid"):
        return given
    kind = stored_as(given)
    obj: Object = without_nulls(given)
    name = object_key(obj).strip("/")
    # what is made of it is called after its uid, which readers know by its form
    obj["metadata"]["uid"] = str(uuid5(NAMESPACE_URL, name)) if kind in MAKERS else name.replace("/", "-")
    _fill_in_defined(obj)
    if is_recorded(given):
        fill_loaded(obj, admission_of(kind), lookup)
        return _unshared(obj)
    spec: Object = obj.setdefault("spec", {}) if kind in ADMISSION else {}
    status: Object = obj.setdefault("status", {}) if kind in ADMISSION else {}
    if kind == "Queue":
        status.setdefault("state", "Open")
        spec.setdefault("weight", 1)
    elif kind == "PodGroup":
        spec.setdefault("queue", "default")
    elif kind == "Pod":
        status.setdefault("phase", "Pending")
    elif kind == "PersistentVolume":  # where there is a cluster, its controller says so
        status.setdefault("phase", "Available")
    if kind in VALIDATED:
        _fill_in(obj, lookup)
    return _unshared(obj)


def _unshared(obj: Object) -> Object:
    """Return the object with a spec of its own: admission shares one among pods that are alike, and who gets a pod may
    change it.
    """
    if obj["kind"] == "Pod":
        obj["spec"] = own_copy(obj["spec"])
    return obj


def admitted(made: Object, lookup: GivenObjects) -> tuple[Object, list[str]]:
    """Return an object that a controller makes with the defaults of its kind, and its problems."""
    kind = stored_as(made)
    if causes := key_problems(kind, made):
        return made, _said(causes)
    obj = prepared(made, lookup)
    return obj, _problems(obj, lookup)


def completed(given: Object, lookup: GivenObjects) -> tuple[Object, list[str]]:
    """Return an equal object with the defaults of its kind, and its problems, whether it has been admitted or not."""
    obj: Object = without_nulls(given)
    obj |= {part: obj.get(part) or {} for part in ("spec", "status")}
    _fill_in_defined(obj)
    if stored_as(obj) in VALIDATED:
        _fill_in(obj, lookup)
    return obj, _problems(obj, lookup)


def _fill_in_defined(obj: Object) -> None:
    """Fill in what Volcano's definition of the kind says."""
    row = KINDS.get(stored_as(obj))
    if row is not None and row.is_custom:
        fill_in_defaults(obj, row)


def _fill_in(obj: Object, lookup: GivenObjects) -> None:
    """Fill in the defaults of a validated kind, as admission does; the object's own fields stay."""
    kind = stored_as(obj)
    rules, status = admission_of(kind), without_nulls(obj["status"])
    if rules.default is not None:
        rules.default(obj, lookup)
    if rules.settle is not None and kind in MAKERS:
        rules.settle(obj, lookup, "")
    obj["status"] = {**obj["status"], **status}


def _problems(obj: Object, lookup: GivenObjects) -> list[str]:
    """Return the objections of admission to an object of a validated kind."""
    kind = stored_as(obj)
    row = KINDS.get(kind)
    if row is not None and row.is_custom and (causes := volcano_problems(obj, row)):
        return _said(causes)
    if kind == "PodGroup":
        return _said(pod_groups.numbers(section(obj, "spec")))
    if kind not in VALIDATED:
        return []
    rules = admission_of(kind)
    forbidden = rules.forbid(obj, lookup) if rules.forbid is not None else None
    if forbidden:
        return [forbidden]
    return _said(rules.validate(obj, lookup) if rules.validate is not None else [])


def _said(causes: list[Cause]) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in causes]
