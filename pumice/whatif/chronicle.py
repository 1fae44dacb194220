"""What happens in a future, taken down as it happens, and summed up at its end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from actors.agents.pod_runs import DURATION
from core.messages.decisions import Evict
from core.messages.events import Mutation
from core.objects.metadata import section, text_map
from pumice.measures.lives import PodLife
from pumice.replay.measure import Measurer
from pumice.whatif.future import EvictedPod, JobFuture
from storage import codec

Object = dict[str, Any]


class Chronicle:
    """From `began` to `ends`, seconds since the epoch. `first`: times up to then count as 0."""

    def __init__(self, began: float, ends: float) -> None:
        self.measured = Measurer(ends)
        self.evictions: list[tuple[float, Evict, tuple[str, ...]]] = []
        self.minima: dict[str, int] = {}
        self.unknown: dict[str, bool] = {}
        self._began = began

    def note(self, mutation: Mutation, at: float) -> None:
        """A change of an object."""
        self.measured.note(mutation, at)
        if mutation.type != "ADDED":
            return
        name = f"{mutation.namespace}/{mutation.name}"
        if mutation.kind == "PodGroup":
            spec = section(codec.unpack(mutation.blob), "spec")
            self.minima[name] = max(int(spec.get("minMember") or 1), 1)
        elif mutation.kind == "Pod":
            pod: Object = codec.unpack(mutation.blob)
            if DURATION not in text_map(pod["metadata"].get("annotations")):
                self.unknown[name] = bool(section(pod, "spec").get("nodeName"))

    def evicted(self, evict: Evict, at: float, votes: tuple[str, ...] = ()) -> None:
        """A decision to take a pod off its node; `votes`: what the plugins said."""
        self.measured.evicted(evict)
        self.evictions.append((at, evict, votes))

    # --- at the end

    def jobs(self) -> dict[str, JobFuture]:
        """By name, as `pumice.replay.measure` names them."""
        figures, by_job = self.measured.jobs(), self.measured.by_job()
        found: dict[str, JobFuture] = {}
        for name, figure in figures.items():
            pods = by_job[name]
            ended = [pod.ended for pod in pods if pod.ended is not None]
            found[name] = JobFuture(
                figure.queue,
                figure.pods,
                figure.bound,
                self._start(pods),
                self._since(max(ended)) if len(ended) == len(pods) else None,
                figure.evicted,
                not any(pod.full_name in self.unknown for pod in pods),
            )
        return found

    def _start(self, pods: Sequence[PodLife]) -> float | None:
        """When the minimum of the job's PodGroup (of the largest, where there are more) was on nodes."""
        minimum = max((self.minima.get(pod.group, 1) for pod in pods), default=1)
        bound = sorted(pod.bound for pod in pods if pod.bound is not None)
        return self._since(bound[minimum - 1]) if len(bound) >= minimum else None

    def _since(self, at: float) -> float:
        return max(round(at - self._began, 3), 0.0)

    def told_evictions(self) -> tuple[EvictedPod, ...]:
        """In order, each with the moment at which the pod, or one in its place, was on a node again."""
        job_of = self._jobs_by_pod_and_group()
        returns = _Returns(self.measured.by_job())
        found: list[EvictedPod] = []
        for at, evict, votes in self.evictions:
            pod = f"{evict.namespace}/{evict.name}"
            back = returns.take(job_of.get(pod, evict.job), pod, round(at, 3))
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
                    votes,
                )
            )
        return tuple(found)

    def _jobs_by_pod_and_group(self) -> dict[str, str]:
        by_job = self.measured.by_job()
        groups = {pod.group: job for job, pods in by_job.items() for pod in pods}
        return {**groups, **{pod.full_name: job for job, pods in by_job.items() for pod in pods}}

    def placements(self) -> dict[str, str]:
        """Pod -> the node it came to last, of those that found one in this future or had it."""
        return {pod.full_name: pod.node for pod in self.measured.pods() if pod.node}


class _Returns:
    """Who came in whose place: of the same name, else the next of the job that was made after."""

    def __init__(self, by_job: dict[str, list[PodLife]]) -> None:
        self._left: defaultdict[str, list[PodLife]] = defaultdict(list)
        for job, pods in by_job.items():
            self._left[job] = sorted(pods, key=lambda pod: (pod.created, pod.full_name))

    def take(self, job: str, pod: str, at: float) -> float | None:
        later = [each for each in self._left[job] if each.created > at]
        chosen = next((each for each in later if each.full_name == pod), next(iter(later), None))
        if chosen is None:
            return None
        self._left[job].remove(chosen)
        return chosen.bound
