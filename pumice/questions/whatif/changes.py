# SPDX-License-Identifier: Apache-2.0
"""Changes of a future: each turns a fork into another."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import yaml

from pumice.belonging import is_of_daemon_set, owner_of
from pumice.cluster.api import schema
from pumice.cluster.api.kinds import KINDS, kind_of
from pumice.cluster.api.origin import as_new
from pumice.cluster.kernel.fork import Fork
from pumice.config.errors import nearest_name
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.commands import Delete, RequestEviction
from pumice.core.objects.metadata import Object, is_list, is_mapping, section
from pumice.errors import InputError
from pumice.questions.oneshot.identity import identity
from pumice.questions.whatif.naming import found, identity_named
from pumice.questions.whatif.sources import arrivals

# --- Assignments

_STEP: Final = re.compile(
    r'\.?(?:(?P<key>[^.\[\]=]+)|\["(?P<quoted>[^"]*)"\]|\[(?P<index>\d+)\]|\[(?P<by>[^\]=]+)=(?P<of>[^\]]*)\])'
)
EXPECTED: Final = (
    'a path and a value, such as spec.weight=3, spec.tasks[name=worker].replicas=2 or metadata.labels["a/b"]=c'
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step down: to a key of a mapping, the place `index` of a list, or the element whose `by` is `of`."""

    key: str = ""
    index: int = -1
    by: str = ""
    of: str = ""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Value assigned to a path; None removes it."""

    path: str
    steps: tuple[Step, ...]
    value: Any

    def on(self, obj: Object) -> Object:
        """Return the object with it. Raises InputError for a path that does not exist."""
        after = copy.deepcopy(obj)
        place: Any = after
        for step, following in zip(self.steps, self.steps[1:], strict=False):
            place = self._down(place, step, following)
        self._put(place, self.steps[-1])
        return after

    def _down(self, place: Any, step: Step, following: Step) -> Any:
        where = self._where(place, step)
        if isinstance(where, int):
            return place[where]
        if place.get(where) is None:
            place[where] = {} if following.key else []
        return place[where]

    def _put(self, place: object, step: Step) -> None:
        if step.index >= 0 and is_list(place) and step.index == len(place) and self.value is not None:
            place.append(self.value)
            return
        where, there = self._where(place, step), cast("dict[str | int, Any]", place)
        if self.value is not None:
            there[where] = self.value
        elif isinstance(where, int):
            del there[where]
        else:
            there.pop(where, None)

    def _where(self, place: object, step: Step) -> str | int:
        if step.key:
            if not is_mapping(place):
                raise self._lost(f"{step.key!r} is asked of what has no fields")
            return step.key
        if not is_list(place):
            raise self._lost("it asks for an element of a value that is not a list")
        elements = place
        if step.index >= 0:
            if step.index >= len(elements):
                raise self._lost(f"there are {len(elements)} elements, no number {step.index}")
            return step.index
        found = [i for i, each in enumerate(elements) if is_mapping(each) and str(each.get(step.by)) == step.of]
        if not found:
            raise self._lost(f"no element has {step.by}={step.of}")
        return found[0]

    def _lost(self, why: str) -> InputError:
        return InputError(why, path=self.path)


def assignment_of(text: str) -> Assignment:
    """Parse `PATH=VALUE`; the value is YAML. Raises InputError."""
    steps, position = list[Step](), 0
    while position < len(text) and text[position] != "=":
        match = _STEP.match(text, position)
        if match is None:
            raise InputError(f"expected {EXPECTED}, was {text!r}")
        key = match["key"] if match["key"] is not None else match["quoted"] or ""
        index = int(match["index"]) if match["index"] is not None else -1
        steps.append(Step(key, index, match["by"] or "", match["of"] or ""))
        position = match.end()
    if not steps or position >= len(text):
        raise InputError(f"expected {EXPECTED}, was {text!r}")
    try:
        value = yaml.safe_load(text[position + 1 :])
    except yaml.YAMLError as error:
        raise InputError(f"the value is not valid YAML: {error}", path=text[:position]) from error
    return Assignment(text[:position], tuple(steps), value)


USER: Final = "whatif"
HOSTNAME: Final = "kubernetes.io/hostname"
CORDONED: Final = "node.kubernetes.io/unschedulable"
OF_A_NODE: Final = ("CSINode", "Numatopology")
"""Kinds with one object a node, under the node's name."""
IDENTITY: Final = (("kind",), ("apiVersion",), *(("metadata", key) for key in ("name", "namespace", "uid")))
"""Paths of what an object is known by."""
TOLD_ONCE: Final = (("spec", "queue"), ("spec", "networkTopology"))
_COUNT: Final = re.compile(r"\d{1,18}")
_NODES: Final = re.compile(rf"({_COUNT.pattern}):like=(.+)")
NODES_IN_ALL: Final = 100_000
"""Of a future. A cluster of Kubernetes holds 5000; many more would fill the memory before anything is answered.

Source: https://kubernetes.io/docs/setup/best-practices/cluster-large/
"""
_KEPT: Final = ("name", "labels", "annotations")


@dataclass(frozen=True, slots=True)
class ForkChange:
    """A change. `words` as people would write it; `on` returns the changed fork and raises InputError where that is
    impossible.
    """

    words: str
    on: Callable[[Fork], Fork]


def changed(fork: Fork, changes: Iterable[ForkChange]) -> Fork:
    """Apply all changes, one after the other."""
    for change in changes:
        try:
            fork = change.on(fork)
        except InputError as error:
            raise InputError(error.problem, source=error.source, path=error.path or change.words) from error
    return fork


# --- Objects come


def submit(objects: Sequence[Object], words: str) -> ForkChange:
    """Submit these as new objects; an existing one is refused."""
    fresh = [as_new(obj) for obj in objects]

    def on(fork: Fork) -> Fork:
        there = set(map(identity, fork.objects))
        for obj in fresh:
            if identity(obj) in there:
                raise InputError(f"{obj['kind']} {obj['metadata'].get('name')} already exists")
        now, later = arrivals(fresh, fork.now)
        return replace(fork, objects=(*fork.objects, *now), later=(*fork.later, *later))

    return ForkChange(words, on)


def add_nodes(text: str) -> ForkChange:
    """Add nodes, `COUNT:like=NODE`: so many nodes like an existing one, empty and open."""
    match = _NODES.fullmatch(text)
    if match is None:
        raise InputError(f"expected COUNT:like=NODE, such as 4:like=n1, was {text!r}", path="--add-nodes")
    return nodes_like(match[2], int(match[1]))


def nodes_like(name: str, count: int) -> ForkChange:
    """Add so many more nodes, up to `NODES_IN_ALL`."""

    def on(fork: Fork) -> Fork:
        model = fork.objects[found(fork.objects, ("Node", "", name))]
        own = [obj for obj in fork.objects if obj["kind"] in OF_A_NODE and obj["metadata"].get("name") == name]
        taken = {obj["metadata"].get("name") for obj in fork.objects if obj["kind"] == "Node"}
        if len(taken) + count > NODES_IN_ALL:
            raise InputError(f"there would be {len(taken) + count} nodes: must not be more than {NODES_IN_ALL} in all")
        fresh = (made for number in range(len(taken) + count) if (made := f"{name}-more-{number}") not in taken)
        names = [next(fresh) for _ in range(count)]
        more = [node_like(each, called) for called in names for each in (model, *own)]
        return replace(fork, objects=(*fork.objects, *more))

    return ForkChange(f"--add-nodes {count}:like={name}", on)


def node_like(model: Object, name: str) -> Object:
    """Return another node of that name, empty and open; or another object named after a node."""
    obj = copy.deepcopy(model)
    metadata = {key: value for key, value in obj["metadata"].items() if key in _KEPT}
    labels = section(metadata, "labels")
    if HOSTNAME in labels:
        metadata["labels"] = {**labels, HOSTNAME: name}
    obj["metadata"] = {**metadata, "name": name}
    if obj["kind"] == "Node":
        spec = {key: value for key, value in section(obj, "spec").items() if key not in ("providerID", "unschedulable")}
        obj["spec"] = {**spec, "taints": [each for each in spec.get("taints") or () if each.get("key") != CORDONED]}
    return obj


# --- Objects change


def set_field(text: str) -> ForkChange:
    """Set a field, `KIND/[NAMESPACE/]NAME:PATH=VALUE`."""
    who, separator, assigned = text.partition(":")
    if not separator:
        raise InputError(f"expected KIND/NAME:PATH=VALUE, such as queue/q1:spec.weight=3, was {text!r}", path="--set")
    named, assignment = identity_named(who), assignment_of(assigned)

    def on(fork: Fork) -> Fork:
        before = fork.objects[found(fork.objects, named)]
        after = assignment.on(before)
        _is_still_itself(before, after)
        _known_fields(before, after)
        _reaches_its_group(fork.objects, before, assignment)
        return _judged(fork, named, assignment)

    return ForkChange(f"--set {text}", on)


def _judged(fork: Fork, who: tuple[str, str, str], assignment: Assignment) -> Fork:
    """Set a field as a user would write it: the api will check the change. The first state stays as `before`, so that
    changes of one object are checked together.
    """
    place = found(fork.objects, who)
    before = {place: fork.objects[place], **fork.before}
    return replace(assign(who, (assignment,), "").on(fork), before=before)


def _is_still_itself(before: Object, after: Object) -> None:
    """Check that an object keeps its name, namespace, uid and kind, which no api changes."""
    for *parents, name in IDENTITY:
        was, now = (section(obj, parents[0]).get(name) if parents else obj.get(name) for obj in (before, after))
        if was != now:
            path = ".".join((*parents, name))
            raise InputError(f"{path} says which object it is and stays: --delete it and --submit another")


def _known_fields(before: Object, after: Object) -> None:
    """Check that the kind has the field: another one would have no effect."""
    kind = kind_of(str(after.get("apiVersion")), after["kind"])
    if kind is None:
        return
    shape = schema.shape_of_kind(kind.group, kind.version, kind.kind)
    known = {path for path, _ in schema.misplaced_fields(before, shape)}
    for path, holder in schema.misplaced_fields(after, shape):
        if path not in known:
            near = nearest_name(path.rpartition(".")[2], holder.names())
            raise InputError(f"a {kind.kind} has no field {path!r}" + (f", did you mean {near!r}?" if near else ""))


def _reaches_its_group(objects: Sequence[Object], obj: Object, assignment: Assignment) -> None:
    """Refuse a change of a Job's field that its existing PodGroup keeps a copy of. Raises InputError."""
    keys = tuple(step.key for step in assignment.steps[:2])
    if obj["kind"] != "Job" or keys not in TOLD_ONCE:
        return
    job = f"{obj['metadata'].get('namespace') or 'default'}/{obj['metadata']['name']}"
    for group in objects:
        if group["kind"] == "PodGroup" and owner_of(group) == job:
            name = f"podgroup/{job.partition('/')[0]}/{group['metadata']['name']}"
            raise InputError(
                f"its PodGroup is there already and keeps what it has: set {name}:{assignment.path} instead"
            )


def assign(who: tuple[str, str, str], assignments: Sequence[Assignment], words: str) -> ForkChange:
    """Set these fields of that object."""

    def on(fork: Fork) -> Fork:
        place = found(fork.objects, who)
        after = fork.objects[place]
        for assignment in assignments:
            after = assignment.on(after)
        return replace(fork, objects=(*fork.objects[:place], after, *fork.objects[place + 1 :]))

    return ForkChange(words, on)


def cordon(name: str) -> ForkChange:
    """Cordon the node: it takes no new pods."""
    return assign(("Node", "", name), (assignment_of("spec.unschedulable=true"),), f"--cordon {name}")


def scale(text: str) -> ForkChange:
    """Scale, `KIND/[NAMESPACE/]NAME[:TASK]=COUNT`: the replicas of a Deployment or ReplicaSet, or of a task of
    a Job.
    """
    target, separator, number = text.rpartition("=")
    if not separator or not _COUNT.fullmatch(number):
        raise InputError(f"expected KIND/NAME[:TASK]=COUNT, such as job/train:worker=4, was {text!r}", path="--scale")
    named, _, task = target.partition(":")
    who = identity_named(named)
    if who[0] == "Job":
        return ForkChange(f"--scale {text}", lambda fork: _scaled_job(fork, who, task, int(number)))
    if not KINDS[who[0]].scale:
        raise InputError(f"a {who[0]} has no replicas: a Job, Deployment or ReplicaSet has", path=f"--scale {text}")
    return assign(who, (assignment_of(f"spec.replicas={number}"),), f"--scale {text}")


def _scaled_job(fork: Fork, who: tuple[str, str, str], task: str, count: int) -> Fork:
    job = fork.objects[found(fork.objects, who)]
    names = [str(each.get("name")) for each in section(job, "spec").get("tasks") or ()]
    if not task and len(names) != 1:
        raise InputError(
            f"it has the tasks {', '.join(names)}: name one of them, as in job/{who[2]}:{names[0]}={count}"
        )
    if task and task not in names:
        raise InputError(f"it has no task {task!r}, but {', '.join(names)}")
    chosen = assignment_of(f"spec.tasks[{names.index(task) if task else 0}].replicas={count}")
    return _judged(fork, who, chosen)


# --- Objects go


def drain(name: str) -> ForkChange:
    """Drain the node: cordon it, and evict its pods, as far as disruption budgets allow."""

    def on(fork: Fork) -> Fork:
        fork = cordon(name).on(fork)
        pods = [obj for obj in fork.objects if _leaves(obj, name)]
        asks = [
            RequestEviction(obj["metadata"].get("namespace") or "default", obj["metadata"]["name"], user=USER)
            for obj in pods
        ]
        return replace(fork, asks=(*fork.asks, *asks))

    return ForkChange(f"--drain {name}", on)


def _leaves(obj: Object, node: str) -> bool:
    if obj["kind"] != "Pod" or section(obj, "spec").get("nodeName") != node:
        return False
    return section(obj, "status").get("phase") not in ENDED_PHASES and not is_of_daemon_set(obj)


def remove_node(name: str) -> ForkChange:
    """Remove the node; its pods are removed when that has been noticed."""
    return _deleted(("Node", "", name), f"--remove-node {name}")


def delete(text: str) -> ForkChange:
    """Delete `KIND/[NAMESPACE/]NAME`, with its owned objects."""
    return _deleted(identity_named(text), f"--delete {text}")


def _deleted(who: tuple[str, str, str], words: str) -> ForkChange:
    def on(fork: Fork) -> Fork:
        found(fork.objects, who)
        return replace(fork, asks=(*fork.asks, Delete(*who, user=USER)))

    return ForkChange(words, on)
