# SPDX-License-Identifier: Apache-2.0
"""A question: a fork, two sets of changes, a horizon; and its answer."""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from pumice.belonging import group_of, owner_of, queue_of
from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.life import Life
from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.collecting import RARELY, rarely
from pumice.core.cycle import Trail
from pumice.core.life.task import ENDED_PHASES, TaskStatus
from pumice.core.messages.commands import RequestEviction, StoreRequest
from pumice.core.messages.decisions import CycleResult, Evict
from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.session.carry import CycleClock
from pumice.core.session.fit import SCHEDULABLE
from pumice.core.state.volumes import volume_rules
from pumice.errors import InputError
from pumice.executors import cores, local
from pumice.plugins.loader import install_plugins
from pumice.questions.explain.victims import opinions_of
from pumice.questions.explain.watch import Subjects, gauges_of, watch_cycle
from pumice.questions.measures.figures import JobFigures, Measurer
from pumice.questions.measures.jobs import OVER
from pumice.questions.measures.lives import PodLife
from pumice.questions.oneshot.between import object_key
from pumice.questions.oneshot.left_out import left_out
from pumice.questions.whatif.changes import ForkChange, changed
from pumice.questions.whatif.difference import FutureDifference, difference
from pumice.questions.whatif.future import EvictedPod, Future, JobFuture, PendingJob
from pumice.storage import codec

# --- Another process

LARGE: Final = 3000
"""Objects of a cluster for which it pays."""


@contextmanager
def another_process(objects: int, plugins_dir: Path | None) -> Generator[Executor | None]:
    """Yield another process, with the same users' plugins; None where it would not pay, or with only one core."""
    if objects < LARGE or cores() == 1:
        yield None
        return
    with local(1, partial(prepare, plugins_dir)) as executor:
        yield executor


def prepare(plugins_dir: Path | None) -> None:
    """Prepare a process that simulates futures."""
    install_plugins(plugins_dir)
    gc.set_threshold(*RARELY)


# --- The chronicle

SUCCEEDED: Final = "Succeeded"
DRAIN, REMOVAL = "drain", "remove-node"
HAPPENED: Final = {DRAIN: "is drained", REMOVAL: "is gone"}


class TakenOff(NamedTuple):
    """A pod that was taken off its node, and how many pods had been made until then: a time cannot tell that, where its
    successor comes at the same one.
    """

    at: float
    evict: Evict
    votes: tuple[str, ...]
    made: int


class Chronicle:
    """The course of a future, from `began` to `ends`, seconds since the epoch. `first`: times up to then count as 0."""

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
        """Note a change of an object."""
        if mutation.kind == "Pod" and self._nodes_gone and mutation.type != "ADDED":
            self._loses_node(mutation, at)  # first: its life is to hear why it ends
        self.measured.lives.note(mutation, at)
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
        """Note a pod that was evicted for an operation on its node: `DRAIN` or `REMOVAL`."""
        # a pod that is being deleted reaches its last phase, too: it counts if its deletion began before
        if section(pod, "status").get("phase") in ENDED_PHASES and not pod["metadata"].get("deletionTimestamp"):
            return
        metadata, node = pod["metadata"], str(section(pod, "spec").get("nodeName"))
        namespace, name = str(metadata.get("namespace") or "default"), str(metadata["name"])
        job = group_of(namespace, pod) or f"{namespace}/{name}"
        reason = f"node {node} {HAPPENED[action]}"
        self.evicted(Evict(namespace, name, str(metadata.get("uid") or ""), node, job, reason, "", action), at)

    def evicted(self, evict: Evict, at: float, votes: tuple[str, ...] = ()) -> None:
        """Note an eviction; `votes`: of the plugins."""
        self.measured.lives.decide(evict)
        self.evictions.append(TakenOff(at, evict, votes, len(self._made)))

    # --- at the end

    def jobs(self) -> dict[str, JobFuture]:
        """Return the jobs by name, as `pumice.questions.measures.figures` names them, with those that have no pods."""
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
                None if gone_s is not None else figure.finished_s,
                figure.evicted,
                not any(pod.full_name in self.unknown for pod in pods),
                gone_s,
                figure.killed,
                figure.restarts,
                figure.lost_pod_s,
            )
        return found

    def _gone_s(self, job: str, pods: Sequence[PodLife]) -> float | None:
        """Return when the job was deleted, unless that was after all its pods had ended by themselves."""
        at = self._gone.get(job)
        if at is None or (job not in self._jobs and pods and all(pod.phase in ENDED_PHASES for pod in pods)):
            return None
        return self._since(at)

    def _start(self, pods: Sequence[PodLife]) -> float | None:
        """Return when the minimum of the job's PodGroup (of the largest, where there are more) was on nodes."""
        groups = {pod.group for pod in pods}
        return self._reached(pods, max((self.measured.last_group(name).min_member for name in groups), default=1))

    def _size(self, job: str, pods: Sequence[PodLife]) -> int:
        size = self.measured.life(job).size
        return size if size is not None else len({pod.full_name for pod in pods})

    def _reached(self, pods: Sequence[PodLife], number: int) -> float | None:
        """Return when for the first time so many pods were on nodes at the same time, or had been until they
        succeeded.
        """
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
        """Return the evictions in order, each with the moment at which the pod, or one in its place, was on a node
        again."""
        job_of = self._jobs_by_pod_and_group()
        ran = {pod.uid: pod.ended - pod.ran_since for pod in self.measured.pods if pod.ended and pod.ran_since}
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
        """Return pod -> its last node, for pods that found one in this future or had it."""
        return {pod.full_name: pod.node for pod in self.measured.pods if pod.node}


class _Returns:
    """Pods that replace others: of the same name, otherwise the next one of the job that was made later."""

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


# --- Lives

UNSAID: Final = "Unschedulable"
Advance = Callable[[float], None]


def live(fork: Fork, horizon_s: float, seed: int = 0, advance: Advance = lambda seconds: None) -> Future:
    """Simulate the fork for so many seconds. The same fork, horizon and seed give the same future.

    `advance` hears how many seconds have gone by.
    """
    return Witness(fork, horizon_s, seed).live(advance)


class Witness:
    """One watched life. The votes are recorded for an eviction by a job that had lost a pod to this one."""

    def __init__(self, fork: Fork, horizon_s: float, seed: int = 0) -> None:
        self._fork, self._horizon_s, self._seed = fork, horizon_s, seed
        self.chronicle = Chronicle(fork.now, fork.now + horizon_s)
        self.life = Life(fork, seed, self.chronicle.note, self._decided)
        self._cycles = 0
        self._drained()

    def live(self, advance: Advance) -> Future:
        """Run to the horizon."""
        self.life.run(self._horizon_s, advance)
        told, life = self.chronicle, self.life
        unknown = list(told.unknown.values())
        return Future(
            self._horizon_s,
            self._cycles,
            told.jobs(),
            told.told_evictions(),
            self._pending(),
            told.measured.queues(),
            told.measured.cluster(),
            told.placements(),
            tuple((named(obj), reply.message) for obj, reply in life.refused),
            tuple((_asked(ask), reply.message) for ask, reply in life.denied),
            sum(unknown),
            len(unknown) - sum(unknown),
            tuple(left_out(self._fork)),
            self._fork.default_duration_s,
        )

    def _drained(self) -> None:
        """Measure pods that were asked to go before anything happened, and that no budget protects."""
        kept = {id(ask) for ask, _ in self.life.denied}
        asks = [ask for ask in self._fork.asks if isinstance(ask, RequestEviction) and id(ask) not in kept]
        if asks:
            pods = [obj for obj in self._fork.objects if obj["kind"] == "Pod"]
            by_name = {(obj["metadata"].get("namespace") or "default", obj["metadata"]["name"]): obj for obj in pods}
            for ask in asks:
                self.chronicle.had_to_go(by_name[ask.namespace, ask.name], self._fork.now, DRAIN)

    def _decided(self, result: CycleResult, at: float) -> None:
        self._cycles += 1
        returned = [evict for evict in result.evicts if self._comes_round(evict)]
        votes = self._votes(returned) if returned else {}
        for evict in result.evicts:
            self.chronicle.evicted(evict, at, votes.get(evict.uid, ()))

    def _comes_round(self, evict: Evict) -> bool:
        """Return whether a pod of this job has been evicted before."""
        return any(before.evict.job == evict.job for before in self.chronicle.evictions)

    def _votes(self, evicts: Sequence[Evict]) -> dict[str, tuple[str, ...]]:
        """Return by uid what each plugin said of the pod when it was chosen."""
        names = {evict.uid: f"{evict.namespace}/{evict.name}" for evict in evicts}
        trail = Trail(frozenset(names.values()), frozenset[str]())
        view, gauges = self.life.kernel.view, gauges_of(self.life.kernel.look_again(trail))
        found: dict[str, tuple[str, ...]] = {}
        for evict in evicts:
            election = trail.elections.of(names[evict.uid], evict.preemptor)
            if election is not None:
                found[evict.uid] = tuple(opinions_of(view, election.preemptor, [election], gauges))
        return found

    def _pending(self) -> dict[str, PendingJob]:
        """Return why jobs with waiting pods, or without pods yet, wait, as the next cycle would."""
        view, fork = self.life.kernel.view, self._fork
        waiting = Counter(
            task.job
            for task in view.tasks.by_key.values()
            if task.job and view.tasks.status[task.row] == TaskStatus.PENDING
        )
        empty = [key for key, job in view.jobs.by_key.items() if job.spec is not None and not job.tasks]
        asked = sorted({*waiting, *empty})
        if not asked:
            return {}
        clock = CycleClock(self.life.kernel.cycle + 1, self.life.now, self._seed)
        subjects = Subjects(frozenset(), frozenset(asked))
        snapshot = view.snapshot(volume_rules(fork.config))
        watched = watch_cycle(view, snapshot, fork.config, clock, self.life.kernel.carry, subjects)
        # pods of a gang that could go somewhere do not say what it lacks: those that could not come last, and count
        pending = sorted(watched.result.report.pending.items(), key=lambda each: each[1].reason != SCHEDULABLE)
        said = {view.tasks.by_key[pod].job: why for pod, why in pending}
        found: dict[str, PendingJob] = {}
        for key in asked:
            message, wait = said[key].message if key in said else "", watched.reasons.jobs.get(key)
            code, message = (UNSAID, message) if wait is None else (wait.code, wait.before(message))
            job = self.chronicle.measured.last_group(key).job
            life = self.chronicle.measured.life(job)
            to_make = max((life.size or 0) - life.there, 0)  # for the first time or again
            found[job] = PendingJob(waiting[key] + to_make, code, message, wait)
        return found


def named(obj: Object) -> str:
    """Return kind and name, for people."""
    return f"{obj['kind']} {object_key(obj).strip('/')}"


def _asked(ask: StoreRequest) -> str:
    namespace, name = getattr(ask, "namespace", ""), getattr(ask, "name", "")
    return f"{type(ask).__name__} {namespace}{'/' if namespace else ''}{name}".strip()


def ignored(_seconds: float) -> None:
    """Ignore a change: no caller watches."""


def what_if(
    fork: Fork,
    changes: Sequence[ForkChange],
    horizon_s: float,
    *,
    against: Sequence[ForkChange] = (),
    seed: int = 0,
    advance: Advance = ignored,
    executor: Executor | None = None,
) -> FutureDifference:
    """Return both futures, from the fork with `against` and with `changes`, by the same seed to the same horizon; the
    first of them by the executor, if given.

    Raises InputError for a change that is impossible.
    """
    instead = changed(fork, against)
    if executor is None:
        before = lived(instead, _fresh(instead, fork), horizon_s, seed, advance)
        return difference(before, lived_with(fork, changes, horizon_s, seed, advance))
    other = executor.submit(lived, instead, _fresh(instead, fork), horizon_s, seed)
    after = lived_with(fork, changes, horizon_s, seed, advance)
    return difference(other.result(), after)


def lived_with(
    fork: Fork, changes: Sequence[ForkChange], horizon_s: float, seed: int = 0, advance: Advance = ignored
) -> Future:
    """Return the future with these changes. Raises InputError for what the api does not take of them."""
    other = changed(fork, changes)
    return lived(other, _fresh(other, fork), horizon_s, seed, advance)


def lived(fork: Fork, fresh: frozenset[int], horizon_s: float, seed: int = 0, advance: Advance = ignored) -> Future:
    """Return the future of a fork. Raises InputError where the api does not take its `fresh` objects, by their
    places."""
    with rarely():
        return _lived(fork, fresh, horizon_s, seed, advance)


def _lived(fork: Fork, fresh: frozenset[int], horizon_s: float, seed: int, advance: Advance) -> Future:
    witness = Witness(fork, horizon_s, seed)
    _demand_taken(witness.life, fork, fresh)
    return witness.live(advance)


def accepted(fork: Fork, changes: Sequence[ForkChange]) -> Fork:
    """Return the fork with these changes. Raises InputError for what the api does not take of them."""
    other = changed(fork, changes)
    _demand_taken(Life(other, 0, lambda mutation, at: None, lambda result, now: None), other, _fresh(other, fork))
    return other


def _demand_taken(life: Life, fork: Fork, fresh: frozenset[int]) -> None:
    mine = {id(fork.objects[place]) for place in fresh}
    for obj, reply in life.refused:
        if id(obj) in mine:
            raise InputError(f"the api refuses {named(obj)}: {reply.message}")
    for ask, reply in life.denied:
        if not isinstance(ask, RequestEviction):  # which a budget may forbid
            raise InputError(f"the api refuses it: {reply.message}")


def _fresh(fork: Fork, origin: Fork) -> frozenset[int]:
    """Return the places of what has come, or has become otherwise."""
    given = set(map(id, origin.objects))
    return frozenset(place for place, obj in enumerate(fork.objects) if id(obj) not in given)
