"""What happens in a future, taken down as it happens, and summed up at its end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pumice.belonging import group_of, owner_of, queue_of
from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.core.messages.decisions import Evict
from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object, section, text_map
from pumice.questions.measures.jobs import OVER
from pumice.questions.measures.lives import PodLife
from pumice.questions.replay.measure import JobFigures, Measurer
from pumice.questions.whatif.future import EvictedPod, JobFuture
from pumice.storage import codec

SUCCEEDED: Final = "Succeeded"
ENDED: Final = (SUCCEEDED, "Failed")
DRAIN, REMOVAL = "drain", "remove-node"
HAPPENED: Final = {DRAIN: "is drained", REMOVAL: "is gone"}


class TakenOff(NamedTuple):
    """A pod that was taken off its node, and how many pods had been made until then: no time says that, where its
    successor comes at the same one.
    """

    at: float
    evict: Evict
    votes: tuple[str, ...]
    made: int


class Chronicle:
    """From `began` to `ends`, seconds since the epoch. `first`: times up to then count as 0."""

    def __init__(self, began: float, ends: float) -> None:
        self.measured = Measurer(ends)
        self.evictions: list[TakenOff] = []
        self.unknown: dict[str, bool] = {}
        self._began = began
        self._nodes_gone: set[str] = set()
        self._lost_node: set[str] = set()
        self._queues: dict[str, str] = {}
        self._jobs: set[str] = set()
        self._gone: dict[str, float] = {}
        self._made: dict[str, int] = {}

    def note(self, mutation: Mutation, at: float) -> None:
        """A change of an object."""
        if mutation.kind == "Pod" and self._nodes_gone and mutation.type != "ADDED":
            self._loses_node(mutation, at)  # first: its life is to hear why it ends
        self.measured.note(mutation, at)
        if mutation.type == "DELETED":
            self._deleted(mutation, at)
        if mutation.type != "ADDED":
            return
        name = f"{mutation.namespace}/{mutation.name}"
        if mutation.kind == "PodGroup":
            group: Object = codec.unpack(mutation.blob)
            self._there(owner_of(group), group)
        elif mutation.kind == "Job":
            self._jobs.add(name)
            self._there(name, codec.unpack(mutation.blob))
        elif mutation.kind == "Pod":
            pod: Object = codec.unpack(mutation.blob)
            self._made.setdefault(str(pod["metadata"].get("uid") or ""), len(self._made))
            if DURATION not in text_map(pod["metadata"].get("annotations")):
                self.unknown[name] = bool(section(pod, "spec").get("nodeName"))

    def _there(self, job: str, obj: Object) -> None:
        self._queues.setdefault(job, queue_of(obj))
        self._gone.pop(job, None)

    def _deleted(self, mutation: Mutation, at: float) -> None:
        if mutation.kind == "Node":
            self._nodes_gone.add(mutation.name)
        elif mutation.kind == "Job":
            state = section(section(codec.unpack(mutation.blob), "status"), "state")
            if state.get("phase") not in OVER:
                self._gone[f"{mutation.namespace}/{mutation.name}"] = at
        elif mutation.kind == "PodGroup":
            owner = owner_of(codec.unpack(mutation.blob))
            if owner not in self._jobs:
                self._gone[owner] = at

    def _loses_node(self, mutation: Mutation, at: float) -> None:
        pod: Object = codec.unpack(mutation.blob)
        uid = str(pod["metadata"].get("uid") or "")
        goes = mutation.type == "DELETED" or pod["metadata"].get("deletionTimestamp")
        if goes and uid not in self._lost_node and section(pod, "spec").get("nodeName") in self._nodes_gone:
            self._lost_node.add(uid)
            self.had_to_go(pod, at, REMOVAL)

    def had_to_go(self, pod: Object, at: float, action: str) -> None:
        """Not for another pod, but for what is done to its node: `DRAIN` or `REMOVAL`."""
        # on its way out it comes to its last phase: who was told to go before that had to go
        if section(pod, "status").get("phase") in ENDED and not pod["metadata"].get("deletionTimestamp"):
            return
        metadata, node = pod["metadata"], str(section(pod, "spec").get("nodeName"))
        namespace, name = str(metadata.get("namespace") or "default"), str(metadata["name"])
        job = group_of(namespace, pod) or f"{namespace}/{name}"
        reason = f"node {node} {HAPPENED[action]}"
        self.evicted(Evict(namespace, name, str(metadata.get("uid") or ""), node, job, reason, "", action), at)

    def evicted(self, evict: Evict, at: float, votes: tuple[str, ...] = ()) -> None:
        """A decision to take a pod off its node; `votes`: what the plugins said."""
        self.measured.evicted(evict)
        self.evictions.append(TakenOff(at, evict, votes, len(self._made)))

    # --- at the end

    def jobs(self) -> dict[str, JobFuture]:
        """By name, as `pumice.questions.replay.measure` names them; those that have no pods are among them."""
        figures, by_job = self.measured.jobs(), self.measured.by_job()
        found: dict[str, JobFuture] = {}
        for name in sorted({*figures, *self._queues}):
            figure, pods = figures.get(name, JobFigures(self._queues.get(name, ""))), by_job.get(name, [])
            gone_s = self._gone_s(name, pods)
            found[name] = JobFuture(
                figure.queue,
                figure.pods,
                figure.bound,
                self._start(pods),
                self._reached(pods, self._size(name, pods)),
                None if gone_s is not None or self.measured.goes_on(name) else self._end(pods),
                figure.evicted,
                not any(pod.full_name in self.unknown for pod in pods),
                gone_s,
                figure.killed,
                figure.restarts,
                figure.lost_pod_s,
            )
        return found

    def _gone_s(self, job: str, pods: Sequence[PodLife]) -> float | None:
        """When it was deleted, unless that was after all its pods had ended by themselves."""
        at = self._gone.get(job)
        if at is None or (job not in self._jobs and pods and all(pod.phase in ENDED for pod in pods)):
            return None
        return self._since(at)

    def _end(self, pods: Sequence[PodLife]) -> float | None:
        ended = [pod.ended for pod in pods if pod.ended is not None]
        return self._since(max(ended)) if pods and len(ended) == len(pods) else None

    def _start(self, pods: Sequence[PodLife]) -> float | None:
        """When the minimum of the job's PodGroup (of the largest, where there are more) was on nodes."""
        minimum = max((self.measured.minimum(pod.group) for pod in pods), default=1)
        return self._reached(pods, minimum)

    def _size(self, job: str, pods: Sequence[PodLife]) -> int:
        size = self.measured.size(job)
        return size if size is not None else len({pod.full_name for pod in pods})

    def _reached(self, pods: Sequence[PodLife], number: int) -> float | None:
        """When for the first time so many were on nodes at once, or had been there until they succeeded."""
        changes = [(pod.bound, 1) for pod in pods if pod.bound is not None]
        changes += [(pod.ended, -1) for pod in pods if pod.bound is not None and pod.ended and pod.phase != SUCCEEDED]
        there = 0
        for at, change in sorted(changes):
            there += change
            if there >= max(number, 1):
                return self._since(at)
        return None

    def _since(self, at: float) -> float:
        return max(0.0, round(at - self._began, 3))  # in this order: never -0.0

    def told_evictions(self) -> tuple[EvictedPod, ...]:
        """In order, each with the moment at which the pod, or one in its place, was on a node again."""
        job_of = self._jobs_by_pod_and_group()
        ran = {pod.uid: pod.ended - pod.ran_since for pod in self.measured.pods() if pod.ended and pod.ran_since}
        returns = _Returns(self.measured.by_job(), self._made)
        found: list[EvictedPod] = []
        for at, evict, votes, made in self.evictions:
            pod = f"{evict.namespace}/{evict.name}"
            back = returns.take(job_of.get(pod, evict.job), pod, made)
            found.append(
                EvictedPod(
                    self._since(at),
                    pod,
                    job_of.get(pod, evict.job),
                    job_of.get(evict.preemptor, evict.preemptor),
                    evict.preemptor,
                    evict.action,
                    evict.reason,
                    evict.node,
                    None if back is None else self._since(back),
                    None if evict.uid not in ran else round(ran[evict.uid], 3),
                    votes,
                )
            )
        return tuple(found)

    def _jobs_by_pod_and_group(self) -> dict[str, str]:
        by_job = self.measured.by_job()
        groups = {pod.group: job for job, pods in by_job.items() for pod in pods if pod.group}
        return {**groups, **{pod.full_name: job for job, pods in by_job.items() for pod in pods}}

    def placements(self) -> dict[str, str]:
        """Pod -> the node it came to last, of those that found one in this future or had it."""
        return {pod.full_name: pod.node for pod in self.measured.pods() if pod.node}


class _Returns:
    """Who came in whose place: of the same name, else the next of the job that was made after."""

    def __init__(self, by_job: Mapping[str, Sequence[PodLife]], made: Mapping[str, int]) -> None:
        self._made = made
        self._left: defaultdict[str, list[PodLife]] = defaultdict(list)
        for job, pods in by_job.items():
            self._left[job] = sorted(pods, key=lambda pod: (pod.created, pod.full_name))

    def take(self, job: str, pod: str, made: int) -> float | None:
        later = [each for each in self._left[job] if self._made.get(each.uid, 0) >= made]
        chosen = next((each for each in later if each.full_name == pod), next(iter(later), None))
        if chosen is None:
            return None
        self._left[job].remove(chosen)
        return chosen.bound
