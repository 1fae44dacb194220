"""What of a cluster's objects makes up a job: the Job, its PodGroups, its pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pumice.belonging import group_of, job_of, owner_of, queue_of
from pumice.cluster.kernel.fork import Fork
from pumice.core.objects.metadata import Object, section
from pumice.questions.oneshot.prepare import stored_as
from pumice.questions.replay.amounts import Amount, request_of

ENDED = ("Succeeded", "Failed")


@dataclass(slots=True)
class Belongings:
    """Places in the fork's objects, and the queue by name."""

    job: int = -1
    groups: list[int] = field(default_factory=list[int])
    pods: list[int] = field(default_factory=list[int])
    queue: str = ""

    @property
    def places(self) -> list[int]:
        """All of them."""
        return [*([self.job] if self.job >= 0 else []), *self.groups, *self.pods]


def belongings(objects: Sequence[Object]) -> dict[str, Belongings]:
    """By "namespace/name" of the job: as the pods name it, who owns their PodGroup, or the PodGroup or pod itself."""
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
    """Its pods that are on nodes and have not ended."""
    pods = [objects[place] for place in one.pods]
    return [
        pod for pod in pods if section(pod, "spec").get("nodeName") and section(pod, "status").get("phase") not in ENDED
    ]


def asked_by(fork: Fork, one: Belongings) -> list[Amount]:
    """What each pod that is not on a node asks for; of a Job without pods, what those will that it makes."""
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
