# SPDX-License-Identifier: Apache-2.0
"""Objects by their names (`queue/q1`, `job/team-a/train`, `node/n1`), and the objects of a job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pumice.belonging import group_of, job_of, owner_of, queue_of
from pumice.cluster.api.kinds import KINDS, Kind
from pumice.cluster.kernel.fork import Fork
from pumice.config.errors import nearest_keys, nearest_names
from pumice.core.life.task import ENDED_PHASES
from pumice.core.objects.metadata import Object, section
from pumice.errors import InputError
from pumice.questions.measures.amounts import Amount, request_of
from pumice.questions.oneshot.identity import Identity, identity, stored_as

# --- Belongings of a job


@dataclass(slots=True)
class Belongings:
    """Places in the fork's objects, and the queue by name."""

    job: int = -1
    groups: list[int] = field(default_factory=list[int])
    pods: list[int] = field(default_factory=list[int])
    queue: str = ""

    @property
    def places(self) -> list[int]:
        """Return all of them."""
        return [*([self.job] if self.job >= 0 else []), *self.groups, *self.pods]


def belongings(objects: Sequence[Object]) -> dict[str, Belongings]:
    """Return the belongings by "namespace/name" of the job: as the pods name it, the owner of their PodGroup, or the
    PodGroup or pod itself.
    """
    found: dict[str, Belongings] = {}
    owners: dict[str, str] = {}
    for place, obj in enumerate(objects):
        kind = stored_as(obj)
        if kind == "PodGroup":
            job = owners[_name(obj)] = owner_of(obj)
            one = found.setdefault(job, Belongings())
            one.groups.append(place)
            one.queue = queue_of(obj)
        elif kind == "Job":
            one = found.setdefault(_name(obj), Belongings())
            one.job, one.queue = place, one.queue or queue_of(obj)
    for place, obj in enumerate(objects):
        if obj["kind"] == "Pod":
            namespace = str(obj["metadata"].get("namespace") or "default")
            group = group_of(namespace, obj)
            name = job_of(namespace, obj) or owners.get(group) or group or _name(obj)
            found.setdefault(name, Belongings(queue="default")).pods.append(place)
    return found


def running(objects: Sequence[Object], one: Belongings) -> list[Object]:
    """Return its pods that are on nodes and have not ended."""
    pods = [objects[place] for place in one.pods]
    return [
        pod
        for pod in pods
        if section(pod, "spec").get("nodeName") and section(pod, "status").get("phase") not in ENDED_PHASES
    ]


def asked_by(fork: Fork, one: Belongings) -> list[Amount]:
    """Return the request of each pod that is not on a node; of a Job without pods, the requests of the pods it will
    make."""
    pods = [fork.objects[place] for place in one.pods]
    waiting = [pod for pod in pods if not section(pod, "spec").get("nodeName")]
    if waiting or pods or one.job < 0:
        return [request_of(section(pod, "spec")) for pod in waiting]
    tasks: list[Object] = section(fork.objects[one.job], "spec").get("tasks") or []
    return [
        request_of(section(section(task, "template"), "spec"))
        for task in tasks
        for _ in range(int(task.get("replicas") or 1))
    ]


def _name(obj: Object) -> str:
    return f"{obj['metadata'].get('namespace') or 'default'}/{obj['metadata'].get('name')}"


MORE: Final = {"vcjob": "Job", "pg": "PodGroup", "q": "Queue"}


def kind_named(word: str) -> Kind:
    """Return the kind named so: by kind, singular, plural or short name. Raises InputError."""
    lower = word.lower()
    if lower in MORE:
        return KINDS[MORE[lower]]
    exact = next((row for row in KINDS.values() if row.key.lower() == lower), None)
    named = (row for row in KINDS.values() if lower in (row.singular, row.plural, *row.short_names))
    if (found_row := exact or next(named, None)) is not None:
        return found_row
    near = nearest_names(lower, [row.singular for row in KINDS.values()])
    hint = f", did you mean {near[0]!r}?" if near else ""
    raise InputError(f"kind {word!r} does not exist{hint}")


def identity_named(text: str) -> Identity:
    """Parse KIND/NAME or KIND/NAMESPACE/NAME; a missing namespace is default for kinds that have one."""
    word, *rest = text.split("/")
    if not 1 <= len(rest) <= 2 or not all(rest):
        raise InputError(f"expected KIND/NAME or KIND/NAMESPACE/NAME, was {text!r}")
    kind = kind_named(word)
    if not kind.namespaced:
        if len(rest) > 1:
            raise InputError(f"a {kind.kind} is in no namespace: expected {word}/{rest[-1]}, was {text!r}")
        return kind.key, "", rest[0]
    return kind.key, rest[0] if len(rest) > 1 else "default", rest[-1]


def found(objects: Sequence[Object], who: Identity) -> int:
    """Return the place of that object. Raises InputError, with the names that are near."""
    for place, obj in enumerate(objects):
        if obj["metadata"].get("name") == who[2] and identity_in_full(obj) == who:
            return place
    raise InputError(missing(objects, who))


def missing(objects: Iterable[Object], who: Identity) -> str:
    """Return the error text for an object that does not exist, with near names."""
    shown = "/".join(part for part in who[1:] if part)
    known = [
        "/".join(part for part in identity_in_full(obj)[1:] if part)
        for obj in objects
        if identity_in_full(obj)[0] == who[0]
    ]
    near = nearest_keys(shown, known)
    hint = f"; near: {', '.join(near)}" if near else ""
    return f"{who[0]} {shown} does not exist{hint}"


def identity_in_full(obj: Object) -> Identity:
    """Return the identity of an object, in the namespace `default` if it is namespaced and has none."""
    kind, namespace, name = identity(obj)
    row = KINDS.get(kind)
    return kind, namespace or ("default" if row is not None and row.namespaced else ""), name
