"""What a run did for each job and queue, read from its journal: waits, placements, evictions, utilisation."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from core.messages.decisions import Decision, Evict
from core.messages.events import Mutation
from core.objects.metadata import section
from core.quantity import quantity_of
from storage import codec
from storage.journal import API, DECISION, Journal

Object = dict[str, Any]
BATCH = 5_000
GROUP = "scheduling.k8s.io/group-name"
JOB = "volcano.sh/job-name"


@dataclass
class PodStory:
    """Times in seconds since the epoch; 0.0: never."""

    job: str
    group: str
    cpu: float
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
    """`cpu_s`: CPU-seconds that its pods held; `utilisation`: of all that the nodes had in that time."""

    pods: int = 0
    bound: int = 0
    mean_wait_s: float = 0.0
    evicted: int = 0
    cpu_s: float = 0.0
    utilisation: float = 0.0


class Measurer:
    """Takes a journal record by record."""

    def __init__(self) -> None:
        self._pods: dict[str, PodStory] = {}
        self._gone: list[tuple[str, PodStory]] = []
        self._queues: dict[str, str] = {}
        self._evicted: dict[str, int] = {}
        self._capacity: dict[str, float] = {}
        self._began = self._ended = 0.0

    async def read(self, journal: Journal) -> Measurer:
        """All of it."""
        after = 0
        while batch := await journal.read(after, (API, DECISION), BATCH):
            for stored in batch:
                if stored.kind == API:
                    self.note(codec.decode(stored.payload, Mutation), stored.at)
                elif isinstance(decision := codec.decode(stored.payload, Decision), Evict):
                    self._evicted[decision.job] = self._evicted.get(decision.job, 0) + 1
            after = batch[-1].sequence
        return self

    def note(self, mutation: Mutation, at: float) -> None:
        """A change of the api's truth at a time."""
        obj: Object = codec.unpack(mutation.blob)
        self._began, self._ended = self._began or at, at
        match mutation.kind:
            case "Pod":
                self._pod(mutation, obj, at)
            case "PodGroup":
                group = f"{mutation.namespace}/{mutation.name}"
                self._queues[group] = str(section(obj, "spec").get("queue") or "default")
            case "Node":
                allocatable = section(section(obj, "status"), "allocatable")
                self._capacity[mutation.name] = _number(allocatable.get("cpu"))
            case _:
                pass

    def _pod(self, mutation: Mutation, pod: Object, at: float) -> None:
        name = f"{mutation.namespace}/{mutation.name}"
        story = self._pods.get(name)
        if story is None:
            story = self._pods[name] = _story(mutation.namespace, pod, at)
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
        """By "namespace/name" of the job, or of the PodGroup where there is no job."""
        jobs: dict[str, JobFigures] = {}
        spans: dict[str, list[float]] = {}
        for name, story in self.stories():
            job = jobs.setdefault(story.job, JobFigures(self._queues.get(story.group, "")))
            job.pods += 1
            first, last, end = spans.setdefault(story.job, [story.created, 0.0, 0.0])
            if story.bound:
                job.bound += 1
                job.placements[name] = story.node
            spans[story.job] = [min(first, story.created), max(last, story.bound), max(end, story.ended)]
        going_on = {story.job for story in self._pods.values() if not story.ended}
        for job_name, (first, last, end) in spans.items():
            job = jobs[job_name]
            job.wait_s = round(last - first, 3) if job.bound == job.pods else None
            job.finished_s = round(end - self._began, 3) if end and job_name not in going_on else None
            job.evicted = sum(self._evicted.get(group, 0) for group in self._groups(job_name))
        return dict(sorted(jobs.items()))

    def _groups(self, job: str) -> set[str]:
        return {story.group for _, story in self.stories() if story.job == job}

    def queues(self) -> dict[str, QueueFigures]:
        """By name, those that had pods."""
        queues: dict[str, QueueFigures] = {}
        capacity = sum(self._capacity.values()) * (self._ended - self._began)
        waits: dict[str, list[float]] = {}
        for _, story in self.stories():
            name = self._queues.get(story.group, "")
            queue = queues.setdefault(name, QueueFigures())
            queue.pods += 1
            if story.bound:
                queue.bound += 1
                waits.setdefault(name, []).append(story.bound - story.created)
                queue.cpu_s += story.cpu * ((story.ended or self._ended) - story.bound)
        for group, count in self._evicted.items():
            queues.setdefault(self._queues.get(group, ""), QueueFigures()).evicted += count
        for name, queue in queues.items():
            found = waits.get(name, [])
            queue.mean_wait_s = round(sum(found) / len(found), 3) if found else 0.0
            queue.utilisation = round(queue.cpu_s / capacity, 4) if capacity else 0.0
            queue.cpu_s = round(queue.cpu_s, 3)
        return dict(sorted(queues.items()))


def changes(before: Any, after: Any) -> dict[str, dict[str, Any]]:
    """Figure -> before and after, of the figures that differ; `moved`: the pods that went to different nodes."""
    was, now = asdict(before), asdict(after)
    for one, other in ((was, now), (now, was)):
        if "placements" in one:
            placed = other["placements"]
            one["moved"] = {pod: node for pod, node in one["placements"].items() if placed.get(pod) != node}
    for one in (was, now):
        one.pop("placements", None)
    return {name: {"before": was[name], "after": now[name]} for name in was if was[name] != now[name]}


def _story(namespace: str, pod: Object, at: float) -> PodStory:
    annotations = section(section(pod, "metadata"), "annotations")
    group = f"{namespace}/{annotations.get(GROUP) or ''}"
    job = annotations.get(JOB)
    containers: list[Object] = section(pod, "spec").get("containers") or []
    cpu = sum(_number(section(section(one, "resources"), "requests").get("cpu")) for one in containers)
    return PodStory(f"{namespace}/{job}" if job else group, group, cpu, at)


def _number(quantity: Any) -> float:
    return 0.0 if quantity is None else quantity_of(quantity).milli_value() / 1000
