# SPDX-License-Identifier: Apache-2.0
"""Futures of a cluster in which every pod runs for a time drawn from the known times of similar pods."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

from pumice.belonging import group_of, job_of, minimum_of, owner_of
from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.life import Life
from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object, owners_of, parse_time, section, text_map
from pumice.questions.eta.durations import Knowledge
from pumice.questions.eta.runs import TASK, EndedRun, GangFacts, RunKeys, gang_of, keys_of
from pumice.questions.measures.jobs import OVER
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.messages.decisions import CycleResult

PLAIN: Final = "Pod"
DEADLINE: Final = "activeDeadlineSeconds"
HALF: Final = 0.5
TOGETHER: Final = 0.05
"""Part of a run's deviation that is common to all of a future (a correlation of normal scores)."""
_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True)
class Lasting:
    """A pod, or future pods of a template, with the facts that determine its duration: its owner, its time so far, and
    its deadline.
    """

    keys: RunKeys
    elapsed_s: float = 0.0
    deadline_s: float | None = None
    runs: bool = False


class Middle:
    """Gives every pod the median of the known running times of similar pods."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._beliefs = knowledge.drawn()

    def lasts_s(self, pod: Lasting) -> float | None:
        """Return the duration; None for an unknown one."""
        return self._beliefs.lasts(pod.keys, HALF, pod.elapsed_s, pod.deadline_s)


class Draw:
    """Running times of pods, drawn anew for each `number` of a future; pods of one job and task run equally long."""

    def __init__(self, knowledge: Knowledge, seed: int, number: int) -> None:
        self._beliefs, self._salt = knowledge.drawn(_hashed(f"{seed}/{number}")), f"{seed}/{number}/"
        self._common = _NORMAL.inv_cdf(_chance(self._salt))

    def lasts_s(self, pod: Lasting) -> float | None:
        """Return the duration; None for an unknown one."""
        return self._beliefs.lasts(pod.keys, self._part(pod.keys.job), pod.elapsed_s, pod.deadline_s)

    def _part(self, job: str) -> float:
        """Return the part of runs like its own that are shorter: uniform, but all of one future are correlated a
        little."""
        own = _NORMAL.inv_cdf(_chance(self._salt + job))
        return _NORMAL.cdf(math.sqrt(TOGETHER) * self._common + math.sqrt(1.0 - TOGETHER) * own)


def _hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _chance(text: str) -> float:
    """Return a chance between 0 and 1, and neither."""
    return (_hashed(text) // 2**12 + 0.5) / 2**52


class PodsOfFork:
    """The pods of a fork and the templates of its Jobs: their known durations without their own statements."""

    def __init__(self, fork: Fork, ended: Iterable[EndedRun]) -> None:
        self.fork = fork = without_the_past(fork)
        groups = {f"{_namespace(obj)}/{_name(obj)}": obj for obj in fork.objects if obj["kind"] == "PodGroup"}
        self._gangs = {name: gang_of(obj) for name, obj in groups.items()}
        self.pods = {
            place: self._of_pod(obj)
            for place, obj in enumerate(fork.objects)
            if obj["kind"] == PLAIN and section(obj, "status").get("phase") not in ENDED_PHASES
        }
        going_on = [
            EndedRun(pod.keys, pod.elapsed_s, fork.now, self._whose(fork.objects[place]))
            for place, pod in self.pods.items()
            if pod.runs
        ]
        self.knowledge = Knowledge([run for run in ended if run.ended <= fork.now], going_on)

    def _whose(self, pod: Object) -> str:
        return group_of(_namespace(pod), pod) or f"{_namespace(pod)}/{_name(pod)}"

    def _of_pod(self, pod: Object) -> Lasting:
        namespace, spec, status = _namespace(pod), section(pod, "spec"), section(pod, "status")
        keys = keys_of(namespace, pod["metadata"], spec, self._gangs.get(group_of(namespace, pod), GangFacts()))
        began = parse_time(status.get("startTime"))
        runs = status.get("phase") == "Running"  # if it does not say since when, since now, as the future has it too
        elapsed_s = max(self.fork.now - began, 0.0) if runs and began > 0 else 0.0
        return Lasting(keys, elapsed_s, deadline_of(spec), runs)

    def unknown(self) -> int:
        """Return running pods without any known duration."""
        return sum(pod.runs and not self.knowledge.source(pod.keys, pod.deadline_s) for pod in self.pods.values())

    def unsaid(self) -> int:
        """Return pods that do not say themselves how long they run."""
        return sum(
            DURATION not in text_map(self.fork.objects[place]["metadata"].get("annotations")) for place in self.pods
        )

    def sources(self) -> dict[str, int]:
        """Return the number of running pods by the source of their duration."""
        found: dict[str, int] = {}
        for pod in self.pods.values():
            if pod.runs:
                source = self.knowledge.source(pod.keys, pod.deadline_s) or "nothing"
                found[source] = found.get(source, 0) + 1
        return dict(sorted(found.items()))

    def future(self, seed: int, number: int) -> Fork:
        """Return the fork with drawn durations; a pod without a known one never ends."""
        return self._lived(Draw(self.knowledge, seed, number))

    def middle(self) -> Fork:
        """Return the fork in which every pod runs for the median time of similar pods; a pod without known times never
        ends.
        """
        return self._lived(Middle(self.knowledge))

    def _lived(self, draw: Draw | Middle) -> Fork:
        objects = tuple([self._drawn(place, obj, draw) for place, obj in enumerate(self.fork.objects)])
        return replace(self.fork, objects=objects, default_duration_s=0.0)

    def _drawn(self, place: int, obj: Object, draw: Draw | Middle) -> Object:
        if obj["kind"] == "Job":
            return self._drawn_job(obj, draw)
        pod = self.pods.get(place)
        return obj if pod is None else lasting(obj, draw.lasts_s(pod))

    def _drawn_job(self, job: Object, draw: Draw | Middle) -> Object:
        spec = section(job, "spec")
        given: list[Object] = spec.get("tasks") or []
        tasks = [
            {**task, "template": lasting(_with_metadata(task), draw.lasts_s(pod))}
            for task, (pod, _) in zip(given, tasks_of(job), strict=True)
        ]
        return {**job, "spec": {**spec, "tasks": tasks}} if tasks else job


def tasks_of(job: Object) -> list[tuple[Lasting, Object]]:
    """Return the pods to come of each task of a Job, and the task."""
    spec = section(job, "spec")
    tasks: list[Object] = spec.get("tasks") or []
    size = spec.get("minAvailable") or sum(int(task.get("replicas") or 0) for task in tasks)
    gang = GangFacts(str(spec.get("queue") or "default"), max(int(size), 1))
    found: list[tuple[Lasting, Object]] = []
    for number, task in enumerate(tasks):
        pod_spec = section(section(task, "template"), "spec")
        named = {"annotations": {TASK: str(task.get("name") or f"default{number}")}}
        keys = keys_of(_namespace(job), named, pod_spec, gang, _name(job))
        found.append((Lasting(keys, 0.0, deadline_of(pod_spec)), task))
    return found


def _with_metadata(task: Object) -> Object:
    template = section(task, "template")
    return {**template, "metadata": section(template, "metadata")}


def without_the_past(fork: Fork) -> Fork:
    """Return the fork without ended Jobs, their PodGroups (which would seem to wait) and ended pods: they do
    nothing.
    """
    over = {
        f"{_namespace(obj)}/{_name(obj)}"
        for obj in fork.objects
        if obj["kind"] == "Job" and section(section(obj, "status"), "state").get("phase") in OVER
    }

    def stays(obj: Object) -> bool:
        if obj["kind"] == "Job":
            return f"{_namespace(obj)}/{_name(obj)}" not in over
        if obj["kind"] == "PodGroup":
            return not owners_of(obj) or owner_of(obj) not in over
        if obj["kind"] != PLAIN or section(obj, "status").get("phase") not in ENDED_PHASES:
            return True
        return job_of(_namespace(obj), obj) not in over

    return replace(fork, objects=tuple([obj for obj in fork.objects if stays(obj)])) if over else fork


def lasting(obj: Object, lasts_s: float | None) -> Object:
    """Return a pod or template that runs so long, whatever its own statement; None for ever."""
    annotations = {
        name: text for name, text in text_map(obj["metadata"].get("annotations")).items() if name != DURATION
    }
    said = annotations if lasts_s is None else {**annotations, DURATION: f"{max(lasts_s, 0.001):.3f}s"}
    return {**obj, "metadata": {**obj["metadata"], "annotations": said}}


def deadline_of(spec: Object) -> float | None:
    """Return activeDeadlineSeconds, None without it."""
    found = spec.get(DEADLINE)
    return float(found) if isinstance(found, int) and found > 0 else None


def _namespace(obj: Object) -> str:
    return str(obj["metadata"].get("namespace") or "default")


def _name(obj: Object) -> str:
    return str(obj["metadata"].get("name") or "")


# --- Starts


class _EveryoneStartedError(Exception):
    """All awaited jobs have started."""


class Starts:
    """Starts of PodGroups, with their minimum of pods on nodes, in seconds after `began`. `names`: PodGroup -> its
    owner; `left`: those `asked` for by such a name (None: all) that have not started.
    """

    def __init__(self, began: float, asked: frozenset[str] | None) -> None:
        self.left: set[str] = set()
        self._asked = asked
        self.at_s: dict[str, float] = {}
        self.names: dict[str, str] = {}
        self._began = began
        self._minima: dict[str, int] = {}
        self._placed: dict[str, set[str]] = {}

    def hears(self, mutation: Mutation, at: float) -> None:
        """Take a change of an object."""
        name = f"{mutation.namespace}/{mutation.name}"
        if mutation.kind == "PodGroup":
            if name not in self._minima:
                group = codec.unpack(mutation.blob)
                self._minima[name] = minimum_of(group)
                owner = self.names[name] = owner_of(group)
                if self._asked is None or owner in self._asked:
                    self.left.add(name)
        elif mutation.kind == PLAIN:
            self._place(name, mutation, at)

    def _place(self, name: str, mutation: Mutation, at: float) -> None:
        pod = codec.unpack(mutation.blob)
        group = group_of(mutation.namespace, pod)
        placed = self._placed.setdefault(group, set())
        if mutation.type == "DELETED":
            placed.discard(name)
        elif section(pod, "spec").get("nodeName"):
            placed.add(name)
            if group and len(placed) >= self._minima.get(group, 1):
                self.at_s.setdefault(group, max(0.0, round(at - self._began, 3)))
                self.left.discard(group)

    def by_name(self) -> dict[str, float | None]:
        """Return the start for each name of a PodGroup, None before. Of several the last counts."""
        found: dict[str, float | None] = {}
        for group, name in sorted(self.names.items()):
            start = self.at_s.get(group)
            known = found.get(name, 0.0)
            found[name] = None if start is None or known is None else max(start, known)
        return found


def starts_in(
    fork: Fork,
    horizon_s: float,
    asked: frozenset[str] | None = None,
    advance: Callable[[float], None] = lambda seconds: None,
) -> dict[str, float | None]:
    """Return by owners of PodGroups the seconds until the start in this future, 0 for started ones, None beyond the
    horizon. The future runs until all that were `asked` for (None: all) have started. `advance` is called with the
    seconds so far.
    """
    starts = Starts(fork.now, asked)
    life = Life(fork, 0, starts.hears, _unheard)

    def look(seconds: float) -> None:
        advance(seconds)
        if seconds > 0 and not starts.left:
            raise _EveryoneStartedError

    with suppress(_EveryoneStartedError):
        life.run(horizon_s, look)
    return starts.by_name()


def _unheard(result: CycleResult, at: float) -> None:
    """Ignore decisions, which show in their changes."""
