"""What a run did for each job and queue, read from its journal: waits, placements, evictions, resources over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from core.errors import QuantityError
from core.messages.decisions import Decision, Evict
from core.messages.events import Mutation
from core.objects.metadata import section
from pumice.replay.amounts import (
    Amount,
    ClusterFigures,
    NodeCapacity,
    ResourceFigures,
    add,
    allocatable_of,
    cluster_figures,
    figures,
    request_of,
)
from storage import codec
from storage.journal import API, DECISION, Stored

Object = dict[str, Any]
GROUP = "scheduling.k8s.io/group-name"
JOB = "volcano.sh/job-name"


@dataclass
class PodStory:
    """Times in seconds since the epoch; 0.0: never. `job` is what the pod itself names, "" where its group tells."""

    job: str
    group: str
    request: Amount
    created: float
    bound: float = 0.0
    node: str = ""
    ended: float = 0.0


@dataclass
class JobFigures:
    """`wait_s`: from the first pod's creation to the last one's binding, None while one is not bound.

    `finished_s`: from the beginning until the last pod has ended, None while one has not.
    """

    queue: str = ""
    pods: int = 0
    bound: int = 0
    wait_s: float | None = None
    evicted: int = 0
    finished_s: float | None = None
    placements: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class QueueFigures:
    """What the pods of a queue's PodGroups came to; `resources` by name."""

    pods: int = 0
    bound: int = 0
    mean_wait_s: float = 0.0
    evicted: int = 0
    resources: dict[str, ResourceFigures] = field(default_factory=dict[str, ResourceFigures])


@dataclass(frozen=True)
class Group:
    """A PodGroup: its queue, and the job it stands for: who owns it, or itself."""

    queue: str
    job: str


class Measurer:
    """Takes a journal record by record. Nothing counts that is later than `horizon`, where all that goes on is cut."""

    def __init__(self, horizon: float) -> None:
        self._pods: dict[str, PodStory] = {}
        self._gone: list[tuple[str, PodStory]] = []
        self._groups: dict[str, Group] = {}
        self._evicted: dict[str, int] = {}
        self._capacity = NodeCapacity()
        self._began = 0.0
        self._horizon = round(horizon, 3)

    def follow(self, stored: Stored) -> None:
        """The next record."""
        if round(stored.at, 3) > self._horizon:
            return
        if stored.kind == API:
            self.note(codec.decode(stored.payload, Mutation), stored.at)
        elif stored.kind == DECISION and isinstance(decision := codec.decode(stored.payload, Decision), Evict):
            self.evicted(decision)

    def evicted(self, decision: Evict) -> None:
        """A decision to take a pod off its node."""
        self._evicted[decision.job] = self._evicted.get(decision.job, 0) + 1

    def note(self, mutation: Mutation, at: float) -> None:
        """A change of the api's truth at a time."""
        obj: Object = codec.unpack(mutation.blob)
        at = round(at, 3)  # which is finer than anything here, and coarser than what a float loses of a time
        self._began = self._began or at
        match mutation.kind:
            case "Pod":
                self._pod(mutation, obj, at)
            case "PodGroup":
                self._groups[f"{mutation.namespace}/{mutation.name}"] = group_of(mutation, obj)
            case "Node":
                there = mutation.type != "DELETED"
                self._capacity.node(
                    mutation.name, _readable(allocatable_of, section(obj, "status")) if there else {}, at
                )
            case _:
                pass

    def _pod(self, mutation: Mutation, pod: Object, at: float) -> None:
        name = f"{mutation.namespace}/{mutation.name}"
        story = self._pods.get(name)
        if story is None:
            story = self._pods[name] = PodStory("", "", _readable(request_of, section(pod, "spec")), at)
        if not story.group:  # a plain pod is told its group by a controller
            story.job, story.group = job_and_group(mutation.namespace, pod)
        node = section(pod, "spec").get("nodeName")
        if node and not story.node:
            story.node, story.bound = str(node), at
        if section(pod, "status").get("phase") in ("Succeeded", "Failed") and not story.ended:
            story.ended = at
        if mutation.type == "DELETED":
            story.ended = story.ended or at
            self._gone.append((name, self._pods.pop(name)))

    def stories(self) -> list[tuple[str, PodStory]]:
        """Every pod that ever was; a name may come twice."""
        return [*self._gone, *self._pods.items()]

    def jobs(self) -> dict[str, JobFigures]:
        """By "namespace/name" of the job: what the pod names, who owns its PodGroup, else the PodGroup itself."""
        jobs: dict[str, JobFigures] = {}
        for job_name, stories in self.by_job().items():
            groups = {story.group for _, story in stories}
            job = jobs[job_name] = JobFigures(self._queue(stories[0][1].group), len(stories))
            job.placements = {name: story.node for name, story in stories if story.bound}
            job.bound = sum(1 for _, story in stories if story.bound)
            job.evicted = sum(self._evicted.get(group, 0) for group in groups)
            if job.bound == job.pods:
                first = min(story.created for _, story in stories)
                job.wait_s = round(max(story.bound for _, story in stories) - first, 3)
            if all(story.ended for _, story in stories):
                job.finished_s = round(max(story.ended for _, story in stories) - self._began, 3)
        return dict(sorted(jobs.items()))

    def by_job(self) -> dict[str, list[tuple[str, PodStory]]]:
        """Every pod that ever was, by the name of its job (see `jobs`)."""
        found: dict[str, list[tuple[str, PodStory]]] = {}
        for name, story in self.stories():
            found.setdefault(story.job or self.job_of(story.group) or name, []).append((name, story))
        return found

    def job_of(self, group: str) -> str:
        """The job that a PodGroup stands for."""
        known = self._groups.get(group)
        return known.job if known else group

    def _queue(self, group: str) -> str:
        known = self._groups.get(group)
        return known.queue if known else ""

    def queues(self) -> dict[str, QueueFigures]:
        """By name, those that had pods."""
        queues: dict[str, QueueFigures] = {}
        waits: dict[str, list[float]] = {}
        capacity = self._capacity.through(self._horizon)
        for name, stories in self._by_queue().items():
            queue = queues[name] = QueueFigures(pods=len(stories))
            waits[name] = [story.bound - story.created for story in stories if story.bound]
            queue.bound = len(waits[name])
            queue.mean_wait_s = round(sum(waits[name]) / queue.bound, 3) if queue.bound else 0.0
            queue.resources = figures(*self._amounts(stories), capacity)
        for group, count in self._evicted.items():
            queues.setdefault(self._queue(group), QueueFigures()).evicted += count
        return dict(sorted(queues.items()))

    def cluster(self) -> dict[str, ClusterFigures]:
        """By resource."""
        amounts = self._amounts(story for _, story in self.stories())
        return cluster_figures(*amounts, self._capacity.through(self._horizon))

    def _by_queue(self) -> dict[str, list[PodStory]]:
        found: dict[str, list[PodStory]] = {}
        for _, story in self.stories():
            found.setdefault(self._queue(story.group), []).append(story)
        return found

    def _amounts(self, stories: Iterable[PodStory]) -> tuple[Amount, Amount]:
        """What they asked for and what they held, times seconds."""
        requested: dict[str, float] = {}
        allocated: dict[str, float] = {}
        for story in stories:
            end = story.ended or self._horizon
            add(requested, story.request, end - story.created)
            if story.bound:
                add(allocated, story.request, end - story.bound)
        return requested, allocated


def group_of(mutation: Mutation, obj: Object) -> Group:
    """What a PodGroup says of itself."""
    owners: list[Object] = section(obj, "metadata").get("ownerReferences") or []
    name = next((owner["name"] for owner in owners if owner.get("controller")), mutation.name)
    return Group(str(section(obj, "spec").get("queue") or "default"), f"{mutation.namespace}/{name}")


def job_and_group(namespace: str, pod: Object) -> tuple[str, str]:
    """Job and group as the pod itself names them; "" where it does not."""
    annotations = section(section(pod, "metadata"), "annotations")
    job, group = (f"{namespace}/{annotations[key]}" if annotations.get(key) else "" for key in (JOB, GROUP))
    return job, group


def _readable(read: Any, of: Object) -> Amount:
    """Nothing, of quantities that nobody can read."""
    try:
        found: Amount = read(of)
    except QuantityError:
        return {}
    return found
