# SPDX-License-Identifier: Apache-2.0
"""A failing workload is reduced to the jobs, nodes, sizes and run times with which base holds what head breaks.

Large parts are tried first (delta debugging, Zeller and Hildebrandt 2002). A quantile or a mean is of many jobs; what
is kept in its place is the wait of the one job that the change hurts most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Final

import msgspec

from pumice.core.objects.metadata import Object, object_key, objects_in, section
from pumice.questions.gate.expectations import Expectation, expectation_of
from pumice.questions.gate.gate import base_task, head_task
from pumice.questions.gate.judging import Pair, judge_draw
from pumice.questions.gate.policy import GatePolicy
from pumice.questions.gate.record import RecordedJob, RunRecord
from pumice.questions.gate.run import RunTask, run
from pumice.questions.gate.sides import NODE, WORK, PolicySides
from pumice.questions.gate.workloads import Trial, arrival_s, arriving_at, with_durations
from pumice.reduction import leave_out_pieces

WORK_LIMIT: Final = 100_000
"""Limit of the work: a cycle of an empty cluster counts one, and a hundred objects make it two."""
MARGIN_S: Final = 30.0
"""Time that the case goes on after head breaks the expectation, in seconds."""
SPREAD: Final = ("mean", "p95", "p50", "min")


@dataclass(slots=True)
class Reduced:
    """Contains the reduced workload: objects, the expectation that base holds and head breaks, the number of pairs of
    runs, the horizon in seconds (None: until nothing more happens), and whether work was left to try more.
    """

    trial: Trial
    tries: int
    exhausted: bool

    @property
    def expectation(self) -> Expectation:
        """Return the expectation of the case."""
        return self.trial.expect[0]


class _Search:
    """Holds the smallest workload so far."""

    def __init__(
        self, trial: Trial, sides: PolicySides, policy: GatePolicy, limit: float, *, refuses: bool = False
    ) -> None:
        self.trial, self._refuses = trial, refuses
        self._sides, self._policy, self._left = sides, policy, limit
        self._known = set[bytes]()
        self.tries = 0

    @property
    def objects(self) -> list[Object]:
        """Return the objects of the smallest workload."""
        return list(self.trial.objects)

    @property
    def exhausted(self) -> bool:
        """Return whether the limit of runs is reached."""
        return self._left <= 0

    def take(self, objects: Sequence[Object]) -> bool:
        """Continue with these objects if base still holds the expectation that head breaks."""
        content = msgspec.msgpack.encode(objects)
        if self.exhausted or content in self._known:
            return False
        self.tries += 1
        tried = replace(self.trial, objects=tuple(objects))
        if not self._fails(tried):
            self._known.add(content)
            return False
        self.trial = tried
        return True

    def _fails(self, trial: Trial) -> bool:
        base = self._run(trial, base_task(trial, self._sides, self._policy))
        wanted = trial.expect[0]
        own = wanted.value(base, base.horizon_s)
        # of a bound of base, base is the measure and not judged
        if not wanted.scope.jobs(base) or not (wanted.bound.of_base or wanted.is_met(own, own)):
            return False
        head = self._run(trial, head_task(trial, self._sides, self._policy, base))
        # what only head's API refuses is another failure, unless it is the one that is reduced
        is_alike = self._refuses or base.refused == head.refused
        return is_alike and bool(wanted.scope.jobs(head)) and judge_draw(wanted, Pair(base, head)).tells

    def _run(self, trial: Trial, task: RunTask) -> RunRecord:
        record = run(msgspec.structs.replace(task, patience=0))
        self._left -= record.cycles * (1 + len(trial.objects) / 100)
        return record


def reduced(
    trial: Trial,
    expectation: Expectation,
    pair: Pair,
    sides: PolicySides,
    policy: GatePolicy,
    limit: float = WORK_LIMIT,
) -> Reduced | None:
    """Return the smallest workload found under which base holds the expectation and head breaks it; None where that
    does not come out again.
    """
    kept = sharpened(expectation, pair)
    workload = replace(trial.workload, until_s=_until_s(kept, pair, trial.workload.until_s))
    search = _Search(
        Trial(workload, trial.objects, (kept,), is_case=True), sides, policy, limit, refuses=_refuses(pair)
    )
    if not any(search.take(objects) for objects in (*_windows(trial, kept, pair), trial.objects)):
        return None
    _leave_out_pieces(search, lambda obj: obj["kind"] in WORK)
    _leave_out_pieces(search, lambda obj: obj["kind"] == NODE)
    _leave_out_together(search)
    _start_with_first_job(search)
    _make_smaller(search)
    _leave_out_pieces(search, lambda obj: obj["kind"] in WORK)
    _leave_out_pieces(search, lambda obj: obj["kind"] not in WORK)
    _start_with_first_job(search)
    return Reduced(search.trial, search.tries, search.exhausted)


def _refuses(pair: Pair) -> bool:
    return pair.base.refused != pair.head.refused


def _until_s(kept: Expectation, pair: Pair, until_s: float | None) -> float | None:
    """Return a horizon shortly after the moment at which head breaks the expectation; without one, the workload's."""
    found: float | None = None
    if kept.what == "wait" and kept.how == "max" and not kept.bound.of_base:
        worst, _, _ = _worst(kept, pair)
        found = None if worst is None else worst.submitted + kept.bound.value + MARGIN_S
    elif kept.what == "evictions" and not kept.bound.of_base:
        found = _broken_at(kept, pair.head)
    if found is None or (until_s is not None and until_s <= found):
        return until_s
    return float(ceil(found))


def _broken_at(kept: Expectation, head: RunRecord) -> float | None:
    for each in head.evictions:
        before = tuple(one for one in head.evictions if one.at <= each.at)
        part = msgspec.structs.replace(head, evictions=before)
        if not kept.is_met(kept.value(part, each.at), 0.0):
            return each.at + MARGIN_S
    return None


def _windows(trial: Trial, kept: Expectation, pair: Pair) -> Iterator[list[Object]]:
    """Yield workloads without the jobs that had ended before the job that is hurt most came, or that came after it was
    late.
    """
    worst, _, _ = _worst(kept, pair)
    if worst is None:
        return
    until = worst.submitted + (kept.bound.value if kept.what == "wait" and not kept.bound.of_base else inf)
    alive = {
        job.job
        for record in pair
        for job in record.jobs
        if job.submitted <= until and (job.ended is None or job.ended >= worst.submitted)
    }
    objects = [obj for obj in trial.objects if obj["kind"] not in WORK or object_key(obj) in alive]
    if len(objects) < len(trial.objects):
        yield objects


def _start_with_first_job(search: _Search) -> None:
    """Shift all arrivals so that the first job comes at the beginning."""
    arrivals = [at for obj in search.objects if (at := arrival_s(obj)) is not None]
    first = float(int(min(arrivals, default=0.0)))
    until_s = search.trial.workload.until_s
    if first <= 0 or any(arrival_s(obj) is None for obj in search.objects if obj["kind"] in WORK):
        return
    before = search.trial
    search.trial = replace(
        before, workload=replace(before.workload, until_s=None if until_s is None else until_s - first)
    )
    if not search.take([_sooner(obj, first) for obj in search.objects]):
        search.trial = before


def _sooner(obj: Object, by_s: float) -> Object:
    at = arrival_s(obj)
    return obj if at is None else arriving_at(obj, at - by_s)


def sharpened(expectation: Expectation, pair: Pair) -> Expectation:
    """Return what is kept of an expectation: of a mean or a quantile, that the job which the change hurts most waits no
    longer than half-way between what it waits on both sides.
    """
    if expectation.what not in ("wait", "slowdown", "unstarted", "unended", "started", "makespan", "util"):
        return expectation
    if expectation.what == "wait" and expectation.how == "max" and not expectation.bound.of_base:
        return expectation
    worst, before, after = _worst(expectation, pair)
    if worst is None or after - before < 1.0:
        return expectation
    namespace, name = worst.namespace, worst.name
    limit = round(before + (after - before) / 2, 1)
    measure = f"wait.max[name={name},namespace={namespace}]"
    return expectation_of(f"{worst.job} starts within {limit:g} s", measure, "<=", limit)


def _worst(expectation: Expectation, pair: Pair) -> tuple[RecordedJob | None, float, float]:
    """Return the job in scope whose wait grows most, and its wait on both sides."""
    head, horizon = {job.job: job for job in pair.head.jobs}, pair.horizon_s
    grown = [
        (head[job.job].wait_s(horizon) - job.wait_s(horizon), job)
        for job in expectation.scope.jobs(pair.base)
        if job.job in head
    ]
    if not grown:
        return None, 0.0, 0.0
    _, worst = max(grown, key=lambda each: (each[0], each[1].job))
    return worst, worst.wait_s(horizon), head[worst.job].wait_s(horizon)


def _leave_out_pieces(search: _Search, may_go: Callable[[Object], bool]) -> None:
    """Leave out parts of the removable objects."""

    def those() -> list[Object]:
        return [obj for obj in search.objects if may_go(obj)]

    def without(start: int, end: int) -> bool:
        gone = set(map(id, those()[start:end]))
        return search.take([obj for obj in search.objects if id(obj) not in gone])

    leave_out_pieces(lambda: len(those()), without, lambda: search.exhausted)


def _leave_out_together(search: _Search) -> None:
    """Leave out a node together with the jobs that fill it, since neither can go alone."""
    while _left_one_out(search):
        pass


def _left_one_out(search: _Search) -> bool:
    jobs = [obj for obj in search.objects if obj["kind"] in WORK]
    nodes = [obj for obj in search.objects if obj["kind"] == NODE]
    if len(nodes) < 2:
        return False
    share = -(-len(jobs) // len(nodes))
    for size in range(1, share + 2):
        for start in range(0, len(jobs) - size + 1, size):
            gone = {id(nodes[-1]), *map(id, jobs[start : start + size])}
            if search.take([obj for obj in search.objects if id(obj) not in gone]):
                return True
    return False


def _make_smaller(search: _Search) -> None:
    """Make the workload smaller: fewer pods, round run times, arrivals at round moments."""
    for place in range(len(search.objects)):
        for simpler in _simpler(search.objects[place]):
            if search.exhausted:
                return
            if search.objects[place] != simpler:
                search.take([*search.objects[:place], simpler, *search.objects[place + 1 :]])


def _simpler(obj: Object) -> Iterator[Object]:
    """Yield the object, simplified in one respect each time."""
    tasks = objects_in(section(obj, "spec"), "tasks")
    if obj["kind"] == "Job" and len(tasks) == 1 and int(tasks[0].get("replicas", 1)) > 1:
        yield _with_pods(obj, 1)
        yield _with_pods(obj, int(tasks[0]["replicas"]) // 2)
    at = arrival_s(obj)
    if at:
        yield arriving_at(obj, float(round(at / 10) * 10))
        yield arriving_at(obj, float(round(at)))
    yield with_durations(obj, _rounded)


def _with_pods(obj: Object, pods: int) -> Object:
    made = deepcopy(obj)
    task = made["spec"]["tasks"][0]
    was, task["replicas"] = int(task.get("replicas", 1)), max(1, pods)
    least = int(made["spec"].get("minAvailable") or was)
    made["spec"]["minAvailable"] = min(task["replicas"], least)
    if "minAvailable" in task:
        task["minAvailable"] = min(task["replicas"], int(task["minAvailable"]))
    return made


def _rounded(seconds: float) -> float:
    return float(max(1, round(seconds / 10) * 10))


def counted(objects: Sequence[Object]) -> tuple[int, int]:
    """Return the number of jobs and of nodes."""
    return sum(obj["kind"] in WORK for obj in objects), sum(obj["kind"] == NODE for obj in objects)
