# SPDX-License-Identifier: Apache-2.0
"""Measures of a run for each job and queue, read from its journal: waits, placements, evictions, resources over
time."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

from pumice.core.messages.decisions import Evict
from pumice.questions.measures.amounts import Amount, ClusterFigures, ResourceFigures, add, cluster_figures, figures
from pumice.questions.measures.jobs import JobLife, JobRow, Jobs, waited_s
from pumice.questions.measures.lives import GroupLife, Listener, Lives, PodLife
from pumice.storage.journal import Stored


@dataclass
class JobFigures:
    """Figures of a job. `wait_s` as `JobRow` has it, of the last job of that name; from the beginning of the run
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


class Stay(NamedTuple):
    """A span in which a node had the same allocatable resources."""

    amount: Amount
    since: float
    until: float = math.inf

    def within(self, first: float, last: float) -> float:
        """Return how many seconds of it lie between two moments."""
        return max(min(last, self.until) - max(first, self.since), 0.0)


class Measurer(Listener):
    """Measures a journal record by record with `lives`, and keeps all `pods` that ever existed, a name perhaps twice.
    Nothing after `horizon` counts, where everything unfinished is cut.
    """

    def __init__(self, horizon: float) -> None:
        self.pods: list[PodLife] = []
        self._jobs = Jobs(self._finished)
        self.lives = Lives((self, self._jobs))
        self._done: defaultdict[str, list[JobRow]] = defaultdict(list)
        self._groups: dict[str, GroupLife] = {}
        self._evicted: Counter[str] = Counter()
        self._stays: defaultdict[str, list[Stay]] = defaultdict(list)
        self._horizon = round(horizon, 3)

    def follow(self, stored: Stored) -> None:
        """Follow the next record."""
        if round(stored.at, 3) <= self._horizon:
            self.lives.follow(stored)

    # --- lives

    def _finished(self, row: JobRow) -> None:
        self._done[row.job].append(row)

    def decided(self, evict: Evict) -> None:
        """Count the decision, whatever its outcome."""
        self._evicted[evict.job] += 1

    def pod_created(self, pod: PodLife) -> None:
        """Remember the new pod."""
        self.pods.append(pod)

    def group(self, group: GroupLife) -> None:
        """Remember the PodGroup, also after its deletion."""
        self._groups[f"{group.namespace}/{group.name}"] = group

    def node(self, name: str, allocatable: Amount, at: float) -> None:
        """Note the capacity over time."""
        stays = self._stays[name]
        if stays and stays[-1].until == math.inf:
            if stays[-1].amount == allocatable:
                return
            stays[-1] = stays[-1]._replace(until=at)
        if allocatable:
            stays.append(Stay(allocatable, at))

    # --- figures

    def life(self, job: str) -> JobLife:
        """Return what exists of a job by its name, empty without any."""
        return self._jobs.lives.get(job) or JobLife(JobRow(job))

    def last_group(self, name: str) -> GroupLife:
        """Return the present or last state of a PodGroup; one of a single pod where none ever existed."""
        return self._groups.get(name) or GroupLife("", "", name, "", 0.0)

    def by_job(self) -> dict[str, list[PodLife]]:
        """Return every pod that ever was, by the name of its job."""
        return self._by(lambda pod: pod.job)

    def _by(self, name: Callable[[PodLife], str]) -> dict[str, list[PodLife]]:
        found: defaultdict[str, list[PodLife]] = defaultdict(list)
        for pod in self.pods:
            found[name(pod)].append(pod)
        return dict(sorted(found.items()))

    def _queue(self, pod: PodLife) -> str:
        return self.last_group(pod.group).queue

    def jobs(self) -> dict[str, JobFigures]:
        """Return the figures by "namespace/name" of the job (see `pumice.belonging`)."""
        return {name: self._job(name, pods) for name, pods in self.by_job().items()}

    def _job(self, name: str, pods: list[PodLife]) -> JobFigures:
        """Return a job's figures: the wait of the last job of a name, the losses of all of them."""
        life, began = self._jobs.lives.get(name), self.lives.began
        rows = [*self._done[name], *([life.row] if life else [])]
        bound = [pod.bound for pod in pods if pod.bound is not None]
        ended = [pod.ended for pod in pods if pod.ended is not None]
        over = len(ended) == len(pods) and not (life and life.goes_on)
        return JobFigures(
            queue=self._queue(pods[0]),
            pods=len(pods),
            bound=len(bound),
            bound_s=round(max(bound) - began, 3) if len(bound) == len(pods) else None,
            wait_s=waited_s(rows[-1]) if rows else None,
            evicted=sum(self._evicted[group] for group in {pod.group for pod in pods}),
            killed=sum(row.killed for row in rows),
            restarts=sum(row.restarts for row in rows),
            lost_pod_s=round(sum(row.lost_pod_s for row in rows), 3),
            finished_s=round(max(ended) - began, 3) if over else None,
            placements={pod.full_name: pod.node for pod in pods if pod.node},
        )

    def queues(self) -> dict[str, QueueFigures]:
        """Return the figures of queues by name, for those that had pods."""
        queues, capacity = dict[str, QueueFigures](), self._capacity()
        jobs: defaultdict[str, list[JobFigures]] = defaultdict(list)
        for job in self.jobs().values():
            jobs[job.queue].append(job)
        for name, pods in self._by(self._queue).items():
            waits = [job.wait_s for job in jobs[name] if job.wait_s is not None]
            queues[name] = QueueFigures(
                pods=len(pods),
                bound=sum(pod.bound is not None for pod in pods),
                mean_wait_s=round(fmean(waits), 3) if waits else None,
                killed=sum(job.killed for job in jobs[name]),
                restarts=sum(job.restarts for job in jobs[name]),
                lost_pod_s=round(sum(job.lost_pod_s for job in jobs[name]), 3),
                resources=figures(*self._amounts(pods), capacity),
            )
        for group, count in self._evicted.items():
            queues.setdefault(self.last_group(group).queue, QueueFigures()).evicted += count
        return dict(sorted(queues.items()))

    def cluster(self) -> dict[str, ClusterFigures]:
        """Return the figures of the cluster by resource."""
        return cluster_figures(*self._amounts(self.pods), self._capacity())

    def _amounts(self, pods: Iterable[PodLife]) -> tuple[Amount, Amount]:
        """Return the requested and held amounts of pods, times seconds; on a deleted node a pod holds nothing."""
        requested: dict[str, float] = {}
        allocated: dict[str, float] = {}
        for pod in pods:
            end = self._horizon if pod.ended is None else pod.ended
            add(requested, pod.request, end - pod.created)
            if pod.bound is not None:
                add(allocated, pod.request, sum(stay.within(pod.bound, end) for stay in self._stays.get(pod.node, ())))
        return requested, allocated

    def _capacity(self) -> Amount:
        """Return what the nodes had, times seconds."""
        total: dict[str, float] = {}
        for stays in self._stays.values():
            for stay in stays:
                add(total, stay.amount, stay.within(stay.since, self._horizon))
        return total
