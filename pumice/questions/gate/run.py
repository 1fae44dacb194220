# SPDX-License-Identifier: Apache-2.0
"""A run simulates a workload under one policy on virtual time, and keeps a record. A worker has one run as its task."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from pumice.belonging import group_of
from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.life import Life
from pumice.collecting import RARELY
from pumice.core.cycle import let_go, open_session, tables_later
from pumice.core.life.task import TaskStatus
from pumice.core.messages.decisions import CycleResult, Evict
from pumice.core.messages.events import ConfigLoaded, Mutation
from pumice.core.messages.queue_tables import gauged, readable
from pumice.core.objects.hyper_node import read_hyper_node
from pumice.core.objects.metadata import Object, object_key, section, text_map
from pumice.core.objects.pod import Task
from pumice.core.outside import Supposing
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.state.hypernodes import build_tree
from pumice.core.state.volumes import volume_rules
from pumice.load.manifests import still_running
from pumice.plugins.loader import install_plugins
from pumice.questions.adviser.waiting_jobs import waiting_jobs_of
from pumice.questions.explain.scene import Scene
from pumice.questions.gate.demands import demands, is_volcano_job
from pumice.questions.gate.expectations import RunLimit
from pumice.questions.gate.record import (
    RecordedBind,
    RecordedEviction,
    RecordedJob,
    RecordedLoop,
    RecordedNode,
    RecordedUse,
    RunRecord,
)
from pumice.questions.gate.sides import WORK
from pumice.questions.measures.jobs import JobRow, Jobs
from pumice.questions.measures.lives import Listener, Lives, PodLife
from pumice.questions.measures.measures import MeasuresSummary, Measuring
from pumice.questions.measures.over_time import Grid
from pumice.questions.measures.resource_use import ResourceUse
from pumice.questions.whatif.ask import named
from pumice.questions.whatif.future import EvictedPod
from pumice.questions.whatif.loops import loops_of
from pumice.questions.whatif.sources import handed_in
from pumice.storage import codec

HYPER_NODE: Final = "HyperNode"
FAR_S: Final = 30 * 86_400.0
"""Horizon of "idle": a workload that goes on for longer is cut off there."""
LOOK_EVERY_S: Final = 30.0
"""Time between checks for an early end of a run, in seconds; later a fiftieth of the elapsed time."""
FIFTIETH: Final = 0.02
LOOP: Final = "loop"
"""Reason of an early end: jobs evict each other again and again."""
PATIENCE: Final = 1000
"""Cycles before a run may end early: a short one is worth more whole."""
ROUNDS: Final = 20
"""Number of evictions that prove a loop, if a run may end early for one."""


class WantedFacts(Struct, frozen=True):
    """Selects parts of a record that cost time: they are computed only when an expectation needs them."""

    younger: bool = False
    shares: bool = False
    uses: bool = False
    pending: bool = False
    summary: bool = False


class WorkloadNames(Struct, frozen=True):
    """Names queues and classes by job, as the workload calls them; jobs that a policy does not rename are not among
    them.
    """

    queues: tuple[tuple[str, str], ...] = ()
    classes: tuple[tuple[str, str], ...] = ()


NO_NAMES: Final = WorkloadNames()


class RunTask(Struct, frozen=True):
    """Describes a run: packed objects with their arrivals, the text of a scheduler.conf, the horizon in seconds (None:
    until nothing more happens, after `longest_s` at the latest) and what ends it early: `limits` that are broken for
    good, or a loop, once there were `patience` cycles. `names`: what the workload calls queues and classes of jobs that
    a policy renames; `plugins`: users' plugins by name, each with what tells its version from others.
    """

    objects: bytes
    config: str
    source: str
    start: float
    until_s: float | None
    default_duration_s: float
    seed: int = 0
    wanted: WantedFacts = WantedFacts()
    limits: tuple[RunLimit, ...] = ()
    stops_at_loops: bool = False
    patience: int = PATIENCE
    names: WorkloadNames = NO_NAMES
    plugins: tuple[tuple[str, str], ...] = ()
    plugins_dir: str = ""
    longest_s: float = FAR_S


def run(task: RunTask) -> RunRecord:
    """Simulate a run. Raises ConfigError, InputError."""
    install_plugins(Path(task.plugins_dir) if task.plugins_dir else None)
    thresholds = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        return _Run(task).record()
    finally:
        gc.set_threshold(*thresholds)


def fork_of(task: RunTask) -> Fork:
    """Return the fork from which a run starts. Raises ConfigError, InputError."""
    told = ConfigLoaded("", task.config, task.source)
    return handed_in(still_running(codec.unpack(task.objects)), task.start, told, task.default_duration_s)


@dataclass(slots=True)
class _Eviction:
    at: float
    pod: str
    evict: Evict
    life: PodLife | None
    queue: str
    priority: int
    by: str
    by_queue: str
    by_priority: int | None
    ran_s: float
    younger: int
    within_share: bool | None
    returns: float | None = None


class _Run(Listener):
    """Simulates one run and keeps its notes."""

    def __init__(self, task: RunTask) -> None:
        self._task = task
        fork = fork_of(task)
        self._config, self._began = fork.config, round(fork.now, 3)
        given = (*fork.objects, *(obj for _, obj in fork.later))
        self._labels = {object_key(obj): text_map(obj["metadata"].get("labels")) for obj in given}
        self._arrivals = {object_key(obj): round(after_s, 3) for after_s, obj in fork.later}
        self._foreseen = not any(obj["kind"] in WORK and not _is_one_job(obj) for obj in given)
        self._sizes: dict[str, int] = {}
        self._queues, self._classes = dict(task.names.queues), dict(task.names.classes)
        self._rows: list[JobRow] = []
        self._jobs = Jobs(self._rows.append)
        self._jobs.began = self._began
        self._binds: list[RecordedBind] = []
        self._gone: defaultdict[str, list[_Eviction]] = defaultdict(list)
        self._uses = ResourceUse(Grid(self._began))
        self._evictions: list[_Eviction] = []
        self._cycles, self._stopped, self._look_at, self._checked = 0, "", LOOK_EVERY_S, 0
        self._failed, self._has_cycles = 0, False
        self._measuring = Measuring(self._began) if task.wanted.summary else None
        listeners = () if self._measuring is None else self._measuring.listeners()
        self._lives = Lives((self._jobs, self, *((self._uses,) if task.wanted.uses else ()), *listeners))
        self._life = Life(fork, task.seed, self._hear, self._decide)

    def job(self, name: str, job: Object | None, at: float) -> None:
        """Keep the size of a Volcano Job, which may have no pods yet, and the labels of a controller's Job."""
        if job is None:
            return
        self._sizes[name] = sum(int(task.get("replicas", 1)) for task in section(job, "spec").get("tasks") or ())
        if name not in self._labels:
            self._labels[name] = text_map(job["metadata"].get("labels"))

    def pod_bound(self, pod: PodLife) -> None:
        """Note the bind: the pod succeeds the first evicted pod of its job without a successor."""
        at, task = round((pod.bound or 0.0) - self._began, 3), self._life.kernel.view.tasks.by_key.get(pod.full_name)
        self._binds.append(RecordedBind(at, pod.full_name, pod.job, "" if task is None else task.role, pod.node))
        if gone := self._gone.get(pod.job):
            same = next((each for each in gone if each.pod == pod.full_name), gone[0])
            same.returns = at
            gone.remove(same)

    def record(self) -> RunRecord:
        """Run to the horizon, or until the run certainly breaks a limit, and return its record."""
        horizon = self._task.longest_s if self._task.until_s is None else self._task.until_s
        idle = True
        for elapsed in self._life.moments(horizon):
            if elapsed >= self._look_at and self._is_over(elapsed):
                idle = False
                break
        ended_s = self._life.elapsed if self._stopped or self._task.until_s is None else horizon
        idle = idle and self._task.until_s is None and ended_s < self._task.longest_s
        return self._recorded(round(ended_s, 3), idle=idle)

    # --- what is heard

    def _hear(self, mutation: Mutation, at: float) -> None:
        if self._measuring is not None and self._has_cycles:
            self._measuring.deserved.until(at, self._life.kernel.view, self._config)
        self._lives.note(mutation, at)

    def _decide(self, result: CycleResult, at: float) -> None:
        self._has_cycles = True
        self._failed += sum(each.count for each in result.failed)
        if self._measuring is not None:
            self._measuring.deserved.decided(CycleClock(result.cycle, at, self._task.seed))
        self._cycles += bool(result.binds or result.evicts)
        if not result.evicts:
            return
        shares = self._shares(result, at) if self._task.wanted.shares else {}
        leaving = {evict.uid for evict in result.evicts}
        for evict in result.evicts:
            self._lives.decide(evict)
            self._evicted(evict, at, shares, leaving)

    def _evicted(self, evict: Evict, at: float, shares: _Shares, leaving: set[str]) -> None:
        view, pod = self._life.kernel.view, f"{evict.namespace}/{evict.name}"
        life, task = self._lives.pods.get(pod), view.tasks.by_key.get(pod)
        key, by_priority = self._preemptor(evict.preemptor)
        by, by_queue = self._job_of(key)
        queue = "" if life is None else life.queue
        since = None if life is None else life.ran_since
        found = _Eviction(
            round(at - self._began, 3),
            pod,
            evict,
            life,
            queue,
            0 if task is None else task.priority,
            by,
            by_queue,
            by_priority,
            0.0 if since is None else round(at - since, 3),
            self._younger(task, life, leaving) if self._task.wanted.younger else 0,
            _within(shares, queue, life) if shares else None,
        )
        self._evictions.append(found)
        self._gone["" if life is None else life.job].append(found)

    def _preemptor(self, named: str) -> tuple[str, int | None]:
        """Return the PodGroup of a preemptor, which is named by its pod or its group, and its priority."""
        view = self._life.kernel.view
        task = view.tasks.by_key.get(named)
        if task is not None:
            return task.job or named, task.priority
        job = view.jobs.by_key.get(named)
        tasks = () if job is None else job.tasks.values()
        return named, max((each.priority for each in tasks), default=None)

    def _younger(self, victim: Task | None, life: PodLife | None, leaving: set[str]) -> int:
        """Count running pods of the queue, of no higher priority and begun later, that stay."""
        if victim is None or life is None or life.ran_since is None:
            return 0
        tasks = self._life.kernel.view.tasks
        count = 0
        for pod in self._lives.pods.values():
            if pod.queue != life.queue or pod.ended is not None or (pod.ran_since or -inf) <= life.ran_since:
                continue
            other = tasks.by_key.get(pod.full_name)
            if other is None or pod.uid in leaving or other.priority > victim.priority:
                continue
            count += int(tasks.status[other.row]) == TaskStatus.RUNNING
        return count

    def _shares(self, result: CycleResult, at: float) -> _Shares:
        """Return the allocated and deserved amounts of each queue as the cycle opens, in cores, bytes and pieces."""
        view = self._life.kernel.view
        clock = CycleClock(result.cycle, at, self._task.seed)
        session = open_session(view.snapshot(volume_rules(self._config)), self._config, clock, Carry(), ask=Supposing())
        gauges = readable(tables_later(session)()).by_queue()
        let_go(session)
        return {name: (dict(gauged(of, "allocated")), gauged(of, "deserved")) for name, of in gauges.items()}

    # --- ending early

    def _is_over(self, elapsed: float) -> bool:
        """Return whether the run certainly breaks a limit."""
        self._look_at = elapsed + max(LOOK_EVERY_S, elapsed * FIFTIETH)
        task = self._task
        if self._life.kernel.cycle < task.patience:
            return False
        if task.stops_at_loops and len(self._evictions) >= max(ROUNDS, 2 * self._checked):
            self._checked = len(self._evictions)
            if any(loop.times >= ROUNDS for loop in self._loops()):
                self._stopped = LOOP
                return True
        if task.limits:
            record = self._recorded(round(elapsed, 3), idle=False, partial=True)
            for limit in task.limits:
                if limit.is_broken_for_good(record, elapsed):
                    self._stopped = limit.expectation.text
                    return True
        return False

    # --- the record

    def _recorded(self, horizon_s: float, *, idle: bool, partial: bool = False) -> RunRecord:
        jobs = self._finished() if not partial else self._so_far()
        evictions = tuple(self._eviction(each) for each in self._carried_out())
        if partial:
            return RunRecord(horizon_s, jobs, evictions)
        return RunRecord(
            horizon_s,
            jobs,
            evictions,
            tuple(self._binds),
            tuple(RecordedLoop(each.queues or each.jobs, each.times) for each in self._loops()),
            self._nodes(),
            self._used(horizon_s) if self._task.wanted.uses else {},
            self._pending() if self._task.wanted.pending else {},
            tuple(f"{named(obj)}: {answer.message}" for obj, answer in self._life.refused),
            idle,
            self._stopped,
            self._cycles,
            self._foreseen and not self._life.refused,
            self._summary(horizon_s),
            self._failed,
        )

    def _summary(self, horizon_s: float) -> MeasuresSummary | None:
        if self._measuring is None:
            return None
        self._measuring.deserved.until(inf, self._life.kernel.view, self._config)
        return self._measuring.end(round(self._began + horizon_s, 3)).summary

    def _finished(self) -> tuple[RecordedJob, ...]:
        self._jobs.close()
        jobs = [*(self._job(row, 0.0) for row in self._rows), *self._refused()]
        return tuple(sorted(jobs, key=lambda job: (job.submitted, job.job)))

    def _so_far(self) -> tuple[RecordedJob, ...]:
        live = (self._job(life.row, self._began) for life in self._jobs.lives.values())
        return (*(self._job(row, 0.0) for row in self._rows), *live, *self._refused())

    def _refused(self) -> Iterator[RecordedJob]:
        """Yield the jobs that the API refused: to their users they wait until the horizon, as others that never
        start. A pod of a group that was taken belongs to a job that there is.
        """
        refused = {object_key(obj): obj for obj, _ in self._life.refused if obj["kind"] in WORK}
        known = {row.job for row in self._rows} | self._jobs.lives.keys()
        of_jobs = [obj for key, obj in refused.items() if group_of(key.partition("/")[0], obj) in ("", *refused)]
        for job in demands(of_jobs):
            if job.name not in known:
                yield RecordedJob(
                    job.name,
                    self._queues.get(job.name, job.queue),
                    self._classes.get(job.name, job.priority_class),
                    self._labels.get(job.name, {}),
                    sum(role.pods for role in job.roles),
                    self._arrivals.get(job.name, 0.0),
                    is_refused=True,
                )

    def _job(self, row: JobRow, began: float) -> RecordedJob:
        def since(at: float | None) -> float | None:
            return None if at is None else round(at - began, 3)

        return RecordedJob(
            row.job,
            self._queues.get(row.job, row.queue),
            self._classes.get(row.job, row.priority_class),
            self._labels.get(row.job, {}),
            max(row.pods, self._sizes.get(row.job, 0)),
            round(row.submitted - began, 3),
            since(row.started),
            since(row.ended),
            row.run_s,
            row.evictions,
            row.lost_cpu_s,
            row.lost_gpu_s,
        )

    def _eviction(self, each: _Eviction) -> RecordedEviction:
        job = each.pod if each.life is None else each.life.job
        return RecordedEviction(
            each.at,
            each.pod,
            job,
            each.queue,
            each.priority,
            each.evict.action,
            each.by,
            each.by_queue,
            each.by_priority,
            each.ran_s,
            each.younger,
            each.within_share,
        )

    def _carried_out(self) -> list[_Eviction]:
        """Return the evictions after which the pod went. The API refuses some decisions, and one that comes just before
        the horizon is still under way there.
        """
        newest = {each.evict.uid: each for each in self._evictions}.values()  # a refused one may be decided again
        done = [each for each in newest if each.life is not None and each.life.evicted]
        return sorted(done, key=lambda each: each.at)

    def _job_of(self, key: str) -> tuple[str, str]:
        """Return the job of a PodGroup or a pod, and its queue."""
        group = self._lives.groups.get(key)
        if group is not None:
            return group.job, group.queue
        pod = self._lives.pods.get(key)
        return (key, "") if pod is None else (pod.job, pod.queue)

    def _loops(self) -> Sequence[Any]:
        evicted = [
            EvictedPod(
                each.at,
                each.pod,
                each.pod if each.life is None else each.life.job,
                each.by,
                each.evict.preemptor,
                each.evict.action,
                each.evict.reason,
                each.evict.node,
                each.returns,
            )
            for each in self._carried_out()
        ]
        queues = {each.job: each.queue for each in self._lives.groups.values()}
        return loops_of(evicted, queues)

    def _nodes(self) -> dict[str, RecordedNode]:
        domains = self._domains()
        specs = self._life.kernel.view.nodes.specs
        return {spec.name: RecordedNode(spec.labels, domains.get(spec.name, {})) for spec in specs}

    def _domains(self) -> dict[str, dict[str, str]]:
        """Return the HyperNode of each node at each tier, as they are at the end."""
        specs = self._life.kernel.view.nodes.specs
        found: defaultdict[str, dict[str, str]] = defaultdict(dict)
        hyper_nodes = [read_hyper_node(obj) for obj in self._life.kernel.objects() if obj["kind"] == HYPER_NODE]
        for domain in build_tree(hyper_nodes, specs).domains.values() if hyper_nodes else ():
            for row in map(int, domain.rows):
                found[specs[row].name][f"tier{domain.tier}"] = domain.name
        return found

    def _used(self, horizon_s: float) -> dict[str, RecordedUse]:
        until = self._began + horizon_s
        uses, found = self._uses, dict[str, RecordedUse]()
        for resource in uses.resources():
            capacity, torn = uses.capacity[resource], uses.torn[resource]
            capacity.to(until)
            torn.to(until)
            held = 0.0
            for (_, name), series in sorted(uses.held.items()):
                if name == resource:
                    series.to(until)
                    held += series.total
            free = capacity.total - held
            part = round(held / capacity.total, 4) if capacity.total else 0.0
            found[resource] = RecordedUse(part, round(torn.total / free, 4) if free > 0 else 0.0)
        return found

    def _pending(self) -> dict[str, str]:
        """Return the code of the wait reason of each job at the end, as the next cycle would give it."""
        kernel = self._life.kernel
        clock = CycleClock(kernel.cycle + 1, self._life.now, self._task.seed)
        scene = Scene(kernel.view, self._config, clock, Carry.from_dict(kernel.carry.to_dict()))
        return {each.name: each.wait.code.value for each in waiting_jobs_of(scene).waiting}


def _is_one_job(obj: Object) -> bool:
    """Return whether an object is one job under every policy; other kinds make jobs as they go."""
    return obj["kind"] in ("Pod", "PodGroup") or is_volcano_job(obj)


_Shares = dict[str, tuple[dict[str, float], dict[str, float]]]


def _within(shares: _Shares, queue: str, life: PodLife | None) -> bool | None:
    """Return whether the queue holds no more than it deserves of anything that the pod asks for; the pod is taken from
    what it holds, so that the next victim of this cycle is judged by what is left. None: nothing says what it deserves.
    """
    if queue not in shares or life is None or not shares[queue][1]:
        return None
    held, deserved = shares[queue]
    asked = [name for name in life.request if name != "pods"]
    within = all(held.get(name, 0.0) <= deserved.get(name, 0.0) for name in asked)
    for name in asked:
        held[name] = held.get(name, 0.0) - life.request[name]
    return within
