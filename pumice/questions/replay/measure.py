"""Measures of a run for each job and queue, read from its journal: waits, placements, evictions, resources over
time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from pumice.core.messages.decisions import Decision, Evict
from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import section
from pumice.questions.measures.jobs import OVER, JobRow, Jobs, waited_s
from pumice.questions.measures.lives import GroupLife, Listener, Lives, PodLife
from pumice.questions.replay.amounts import (
    Amount,
    ClusterFigures,
    NodeCapacity,
    ResourceFigures,
    add,
    cluster_figures,
    figures,
)
from pumice.storage.journal import API, DECISION, Stored
from pumice.storage.records import read_as


@dataclass
class JobFigures:
    """`wait_s` as `pumice.questions.measures.jobs` has it, of the last job of that name; from the beginning of the run
    `bound_s` until the last pod had a node, None while one has none, `finished_s` until the last pod has ended, None
    while one has not, or is to be made again. `killed`, `restarts` and `lost_pod_s`: see there.
    """

    queue: str = ""
    pods: int = 0
    bound: int = 0
    bound_s: float | None = None
    wait_s: float | None = None
    evicted: int = 0
    killed: int = 0
    restarts: int = 0
    lost_pod_s: float = 0.0
    finished_s: float | None = None
    placements: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class QueueFigures:
    """Figures of the pods of a queue's PodGroups; `mean_wait_s` of its jobs, None while none has started; `resources`
    by name.
    """

    pods: int = 0
    bound: int = 0
    mean_wait_s: float | None = None
    evicted: int = 0
    killed: int = 0
    restarts: int = 0
    lost_pod_s: float = 0.0
    resources: dict[str, ResourceFigures] = field(default_factory=dict[str, ResourceFigures])


class Measurer(Listener):
    """Takes a journal record by record. Nothing counts that is later than `horizon`, where all that goes on is cut."""

    def __init__(self, horizon: float) -> None:
        self._rows = Jobs(self._finished)
        self._done: dict[str, list[JobRow]] = {}
        self._lives = Lives((self, self._rows))
        self._gone: list[PodLife] = []
        self._groups: dict[str, GroupLife] = {}
        self._evicted: dict[str, int] = {}
        self._phases: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._capacity = NodeCapacity()
        self._stays: dict[str, list[tuple[float, float]]] = {}
        self._began = 0.0
        self._horizon = round(horizon, 3)

    def follow(self, stored: Stored) -> None:
        """The next record."""
        if round(stored.at, 3) > self._horizon:
            return
        if stored.kind == API:
            self.note(read_as(stored, Mutation), stored.at)
        elif stored.kind == DECISION and isinstance(decision := read_as(stored, Decision), Evict):
            self.evicted(decision)

    def _finished(self, row: JobRow) -> None:
        self._done.setdefault(row.job, []).append(row)

    def evicted(self, decision: Evict) -> None:
        """A decision to take a pod off its node."""
        self._lives.decide(decision)
        self._evicted[decision.job] = self._evicted.get(decision.job, 0) + 1

    def note(self, mutation: Mutation, at: float) -> None:
        """A change of the api's truth at a time."""
        self._began = self._began or round(at, 3)
        self._lives.note(mutation, at)

    def pod_gone(self, pod: PodLife) -> None:
        """It is remembered."""
        self._gone.append(pod)

    def group(self, group: GroupLife) -> None:
        """It is remembered when it is gone."""
        self._groups[f"{group.namespace}/{group.name}"] = group

    def job(self, name: str, job: dict[str, Any] | None, at: float) -> None:
        """Its phase is remembered, while it is there."""
        if job is None:
            self._phases.pop(name, None)
            self._sizes.pop(name, None)
        else:
            replicas = [task.get("replicas") for task in section(job, "spec").get("tasks") or ()]
            self._sizes[name] = sum(1 if each is None else int(each) for each in replicas)
            self._phases[name] = str(section(section(job, "status"), "state").get("phase") or "Pending")

    def size(self, name: str) -> int | None:
        """Return the number of pods that an existing Volcano Job asks for at once."""
        return self._sizes.get(name)

    def goes_on(self, name: str) -> bool:
        """Return whether the name is a Volcano Job that is not over: it makes lost pods again."""
        return self._phases.get(name, OVER[0]) not in OVER

    def node(self, name: str, allocatable: Amount, at: float) -> None:
        """Note the capacity over time."""
        self._capacity.node(name, allocatable, at)
        stays = self._stays.setdefault(name, [])
        if stays and stays[-1][1] == math.inf:
            if not allocatable:
                stays[-1] = (stays[-1][0], at)
        elif allocatable:
            stays.append((at, math.inf))

    def pods(self) -> list[PodLife]:
        """Return every pod that ever was; a name may come twice."""
        return [*self._gone, *self._lives.pods.values()]

    def there(self, job: str) -> int:
        """Return the number of its pods that are not deleted."""
        return sum(pod.job == job for pod in self._lives.pods.values())

    def jobs(self) -> dict[str, JobFigures]:
        """Return the figures by "namespace/name" of the job (see `pumice.belonging`)."""
        jobs: dict[str, JobFigures] = {}
        there = self._rows.rows()
        for name, pods in self.by_job().items():
            bound = [pod.bound for pod in pods if pod.bound is not None]
            ended = [pod.ended for pod in pods if pod.ended is not None]
            job = jobs[name] = JobFigures(self._queue(pods[0].group), len(pods), len(bound))
            job.placements = {pod.full_name: pod.node for pod in pods if pod.node}
            job.evicted = sum(self._evicted.get(group, 0) for group in {pod.group for pod in pods})
            self._work(job, self._done.get(name, []), there.get(name))
            if job.bound == job.pods:
                job.bound_s = round(max(bound) - self._began, 3)
            if len(ended) == job.pods and not self.goes_on(name):
                job.finished_s = round(max(ended) - self._began, 3)
        return dict(sorted(jobs.items()))

    @staticmethod
    def _work(job: JobFigures, done: list[JobRow], there: JobRow | None) -> None:
        """Waits are of the last job of a name, what was lost is of all of them."""
        rows = done if there is None else [*done, there]
        if rows:
            job.wait_s = rows[-1].wait_s if there is None else waited_s(there)
            job.killed, job.restarts = sum(row.killed for row in rows), sum(row.restarts for row in rows)
            job.lost_pod_s = round(sum(row.lost_pod_s for row in rows), 3)

    def by_job(self) -> dict[str, list[PodLife]]:
        """Return every pod that ever was, by the name of its job."""
        found: dict[str, list[PodLife]] = {}
        for pod in self.pods():
            found.setdefault(pod.job, []).append(pod)
        return found

    def job_of(self, group: str) -> str:
        """Return the job that a PodGroup stands for."""
        known = self._groups.get(group)
        return known.job if known else group

    def minimum(self, group: str) -> int:
        """Of how many pods, as its PodGroup says now, or said last; 1 where there is none."""
        known = self._groups.get(group)
        return known.min_member if known else 1

    def _queue(self, group: str) -> str:
        known = self._groups.get(group)
        return known.queue if known else ""

    def queues(self) -> dict[str, QueueFigures]:
        """Return the figures of queues by name, for those that had pods."""
        queues: dict[str, QueueFigures] = {}
        waits: dict[str, list[float]] = {}
        jobs = self.jobs().values()
        for job in jobs:
            if job.wait_s is not None:
                waits.setdefault(job.queue, []).append(job.wait_s)
        capacity = self._capacity.through(self._horizon)
        for name, pods in self._by_queue().items():
            queue = queues[name] = QueueFigures(pods=len(pods))
            queue.bound = sum(pod.bound is not None for pod in pods)
            queue.mean_wait_s = round(fmean(waits[name]), 3) if name in waits else None
            queue.resources = figures(*self._amounts(pods), capacity)
        for job in jobs:
            if (of := queues.get(job.queue)) is not None:
                of.killed, of.restarts = of.killed + job.killed, of.restarts + job.restarts
                of.lost_pod_s = round(of.lost_pod_s + job.lost_pod_s, 3)
        for group, count in self._evicted.items():
            queues.setdefault(self._queue(group), QueueFigures()).evicted += count
        return dict(sorted(queues.items()))

    def cluster(self) -> dict[str, ClusterFigures]:
        """Return the figures of the cluster by resource."""
        return cluster_figures(*self._amounts(self.pods()), self._capacity.through(self._horizon))

    def _by_queue(self) -> dict[str, list[PodLife]]:
        found: dict[str, list[PodLife]] = {}
        for pod in self.pods():
            found.setdefault(self._queue(pod.group), []).append(pod)
        return found

    def _amounts(self, pods: Iterable[PodLife]) -> tuple[Amount, Amount]:
        """Return the amounts that pods asked for and held, times seconds."""
        requested: dict[str, float] = {}
        allocated: dict[str, float] = {}
        for pod in pods:
            end = self._horizon if pod.ended is None else pod.ended
            add(requested, pod.request, end - pod.created)
            if pod.bound is not None:
                add(allocated, pod.request, self._on_node(pod.node, pod.bound, end))
        return requested, allocated

    def _on_node(self, node: str, bound: float, end: float) -> float:
        """Return how many of these seconds the node existed: a pod holds nothing of a deleted node."""
        return sum(max(min(end, gone) - max(bound, came), 0.0) for came, gone in self._stays.get(node, ()))
