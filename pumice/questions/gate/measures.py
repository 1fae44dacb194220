# SPDX-License-Identifier: Apache-2.0
"""Measures compute figures of a run over the jobs in a scope. Waits count every job that was submitted."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.questions.gate.record import RecordedJob, RunRecord
from pumice.questions.gate.scopes import JobScope, ScopeCondition
from pumice.questions.measures.fairness import bounded_slowdown, jain, quantile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HOWS: Final[Mapping[str, Callable[[list[float]], float]]] = {
    "max": lambda values: max(values, default=0.0),
    "mean": lambda values: sum(values) / len(values) if values else 0.0,
    "p95": lambda values: quantile(sorted(values), 0.95) or 0.0,
    "p50": lambda values: quantile(sorted(values), 0.5) or 0.0,
    "min": lambda values: min(values, default=0.0),
}


class AskedMeasure(NamedTuple):
    """Asks for a measure: the jobs in scope, `how` to sum up, and the horizon of both sides."""

    record: RunRecord
    scope: JobScope
    how: str
    horizon_s: float

    def jobs(self) -> list[RecordedJob]:
        """Return the jobs in scope that were submitted by the horizon."""
        return self.scope.jobs(self.record)


def _wait(asked: AskedMeasure) -> float:
    return HOWS[asked.how]([job.wait_s(asked.horizon_s) for job in asked.jobs()])


def _slowdown(asked: AskedMeasure) -> float:
    """Return the bounded slowdown of all submitted jobs; a job without an end counts with its wait so far."""
    return HOWS[asked.how]([slowdown_of(job, asked.horizon_s) for job in asked.jobs()])


def slowdown_of(job: RecordedJob, horizon_s: float) -> float:
    """Return the bounded slowdown of a job: response over run time; runs of less than ten seconds count as ten."""
    run_s = job.run_s if job.run_s is not None else 0.0
    return bounded_slowdown(job.wait_s(horizon_s), run_s)


def _fairness(asked: AskedMeasure) -> float:
    """Return Jain's index of how evenly jobs were slowed down: 1 when all were alike; 1 without jobs."""
    found = jain([1 / slowdown_of(job, asked.horizon_s) for job in asked.jobs()])
    return 1.0 if found is None else found


def _unstarted(asked: AskedMeasure) -> float:
    return float(sum(job.started is None for job in asked.jobs()))


def _started(asked: AskedMeasure) -> float:
    return float(sum(job.started is not None for job in asked.jobs()))


def _unended(asked: AskedMeasure) -> float:
    return float(sum(job.ended is None for job in asked.jobs()))


def _count(asked: AskedMeasure) -> float:
    return float(len(asked.jobs()))


def _evictions(asked: AskedMeasure) -> float:
    """Count the evictions of pods of jobs in scope; `max`: of one job, `for_one`: for one job, `again`: of one pod."""
    inside = {job.job for job in asked.jobs()}
    evicted = [each for each in asked.record.evictions if each.job in inside]
    match asked.how:
        case "max":
            return _most(each.job for each in evicted)
        case "again":
            return _most(each.pod for each in evicted)
        case "for_one":
            return _most(each.by for each in asked.record.evictions if each.by in inside)
        case "of_equal":
            return float(sum(each.by_priority is not None and each.by_priority <= each.priority for each in evicted))
        case "within_share":
            return float(sum(each.within_share is True for each in evicted))
        case "not_youngest":
            return float(sum(each.younger > 0 for each in evicted))
        case "":
            return float(len(evicted))
        case _:
            raise AssertionError(asked.how)


def _most(names: Iterable[str]) -> float:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return float(max(counts.values(), default=0))


def _lost_cpu(asked: AskedMeasure) -> float:
    return round(sum(job.lost_cpu_s for job in asked.jobs()), 3)


def _lost_gpu(asked: AskedMeasure) -> float:
    return round(sum(job.lost_gpu_s for job in asked.jobs()), 3)


def _utilisation(asked: AskedMeasure) -> float:
    use = asked.record.uses.get(RESOURCES.get(asked.how, asked.how))
    return 0.0 if use is None else use.utilisation


def _fragmentation(asked: AskedMeasure) -> float:
    use = asked.record.uses.get(RESOURCES.get(asked.how, asked.how))
    return 0.0 if use is None else use.fragmentation


def _makespan(asked: AskedMeasure) -> float:
    return asked.record.makespan_s


def _placed(asked: AskedMeasure) -> float:
    """Count the pods of jobs in scope that got a node in scope."""
    return float(len(_binds(asked)))


def _where(asked: AskedMeasure) -> float:
    """Count the pods of jobs in scope that got a node whose name has this prefix."""
    return float(sum(node.startswith(asked.how) for _, _, node in _binds(asked)))


def _together(asked: AskedMeasure) -> float:
    """Count the jobs in scope with two pods on one node."""
    nodes: dict[str, list[str]] = {}
    for job, _, node in _binds(asked):
        nodes.setdefault(job, []).append(node)
    return float(sum(len(set(found)) < len(found) for found in nodes.values()))


def _domains(asked: AskedMeasure) -> float:
    """Return the number of domains that the pods of one job span: by a node label, or by a tier of HyperNodes
    (`by=tier1`).
    """
    by, nodes = asked.scope.option("by") or "kubernetes.io/hostname", asked.record.nodes
    spans: dict[str, set[str]] = {}
    for job, _, name in _binds(asked):
        node = nodes.get(name)
        domain = "" if node is None else node.domains.get(by) or node.labels.get(by) or ""
        spans.setdefault(job, set()).add(domain or name)
    return HOWS[asked.how]([float(len(found)) for found in spans.values()])


def _inversions(asked: AskedMeasure) -> float:
    """Count the pairs of a job `first=` and a job `then=` where the second started before the first."""
    record, horizon = asked.record, asked.horizon_s
    inside = asked.jobs()
    first, then = asked.scope.option("first"), asked.scope.option("then")
    early = [_started_at(job, horizon) for job in inside if fnmatchcase(job.name, first)]
    late = [job.started for job in inside if fnmatchcase(job.name, then) and job.started is not None]
    return float(sum(one > other for one in early for other in late)) if record.jobs else 0.0


def _started_at(job: RecordedJob, horizon_s: float) -> float:
    return horizon_s if job.started is None else job.started


def _pending(asked: AskedMeasure) -> float:
    """Count the jobs in scope that wait at the end for a reason (`reason=`; without it, for any)."""
    reason, pending = asked.scope.option("reason") or "*", asked.record.pending
    return float(sum(fnmatchcase(pending[job.job], reason) for job in asked.jobs() if job.job in pending))


def _binds(asked: AskedMeasure) -> list[tuple[str, str, str]]:
    """Return job, pod and last node of each pod in scope."""
    inside = {job.job for job in asked.jobs()}
    found: dict[str, tuple[str, str, str]] = {}
    for bind in asked.record.binds:
        if bind.job in inside and all(
            _holds_at(each, bind.task, bind.node, asked.record) for each in asked.scope.places
        ):
            found[bind.pod] = (bind.job, bind.pod, bind.node)
    return list(found.values())


def _holds_at(condition: ScopeCondition, task: str, name: str, record: RunRecord) -> bool:
    key, op, wanted = condition
    if key == "task":
        found = task
    elif key == "node":
        found = name
    else:
        node = record.nodes.get(name)
        found = "" if node is None else node.labels.get(key.removeprefix("node."), "")
    return fnmatchcase(found, wanted) == (op == "=")


RESOURCES: Final = {"gpu": "nvidia.com/gpu"}
"""Short names of resources."""


Reckoning = Callable[[AskedMeasure], float]
Least = Callable[[AskedMeasure, int | None], float | None]
"""Lower bound of a measure at the end, by a part of the run and the number of jobs in scope at the end (None:
not known). None: it may be anything.
"""


def _grows(reckon: Reckoning) -> Least:
    """Return the lower bound of a measure that only grows: its present value."""
    return lambda asked, jobs: reckon(asked)


def _least_wait(asked: AskedMeasure, jobs: int | None) -> float | None:
    """Return the lower bound of waits: each goes on, and jobs that are not submitted yet wait at least 0 s."""
    waits = [job.wait_s(asked.horizon_s) for job in asked.jobs()]
    if asked.how == "max":
        return HOWS["max"](waits)
    return None if jobs is None else HOWS[asked.how]([*waits, *[0.0] * (jobs - len(waits))])


class MeasureRow(NamedTuple):
    """Defines a measure: how to compute it, how to sum it up (the first is the default; None: any word), its unit, and
    what a part of a run says of its end (None: nothing)."""

    reckon: Reckoning
    hows: tuple[str, ...] | None = ("",)
    unit: str = ""
    least: Least | None = None
    places: bool = False
    options: tuple[str, ...] = ()
    whole: bool = False


SPREAD: Final = ("mean", "max", "p95", "p50", "min")
MEASURES: Final[Mapping[str, MeasureRow]] = {
    "wait": MeasureRow(_wait, SPREAD, "s", _least_wait),
    "slowdown": MeasureRow(_slowdown, SPREAD),
    "fairness": MeasureRow(_fairness),
    "unstarted": MeasureRow(_unstarted),
    "started": MeasureRow(_started, least=_grows(_started)),
    "unended": MeasureRow(_unended),
    "jobs": MeasureRow(_count, least=_grows(_count)),
    "evictions": MeasureRow(
        _evictions,
        ("", "max", "again", "for_one", "of_equal", "within_share", "not_youngest"),
        least=_grows(_evictions),
    ),
    "lostcpu": MeasureRow(_lost_cpu, unit="core s", least=_grows(_lost_cpu)),
    "lostgpu": MeasureRow(_lost_gpu, unit="card s", least=_grows(_lost_gpu)),
    "util": MeasureRow(_utilisation, None, whole=True),
    "frag": MeasureRow(_fragmentation, None, whole=True),
    "makespan": MeasureRow(_makespan, unit="s", whole=True),
    "placed": MeasureRow(_placed, places=True),
    "where": MeasureRow(_where, None, places=True),
    "together": MeasureRow(_together, places=True),
    "domains": MeasureRow(_domains, SPREAD, places=True, options=("by",)),
    "inversions": MeasureRow(_inversions, least=_grows(_inversions), options=("first", "then")),
    "pending": MeasureRow(_pending, options=("reason",)),
}
