# SPDX-License-Identifier: Apache-2.0
"""The language of expectations: a measure over the jobs in a scope, and a bound, alone or against base.

A measure is `WHAT[.HOW][SCOPE]`, for example `wait.mean[queue=batch,pods>=8]`. A scope is a list of conditions, all of
which must hold: `name`, `namespace`, `queue`, `class` (globs), `pods` (a number), `label.KEY` (a glob). A bound is a
number, a duration, or `base` with a slack: `base`, `base + 10%`, `base + 30s`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from pumice.config.durations import duration_s
from pumice.questions.adviser.reasons import WaitCode
from pumice.questions.gate.record import RecordedJob, RunRecord
from pumice.questions.measures.fairness import bounded_slowdown, quantile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
UPPER: Final = ("<=", "<", "==")
"""Operators that a measure which only grows can break for good."""
_MEASURE: Final = re.compile(r"([a-z_]+)(?:\.([^\[\]]+))?(?:\[(.*)\])?", re.DOTALL)
_CONDITION: Final = re.compile(r"([A-Za-z][^=!<>]*?)\s*(!=|>=|<=|=|>|<)\s*(.*)")
_BASE: Final = re.compile(r"base\s*(?:([+-])\s*(\S+))?")


class MeasureError(ValueError):
    """An expectation that cannot be read. `key`: which key of it."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(problem)
        self.key = key


# --- Scopes


class ScopeCondition(NamedTuple):
    """One condition of a scope."""

    key: str
    op: str
    value: str


NUMBERS: Final = ("pods",)
TEXTS: Final = ("name", "namespace", "queue", "class")
SHORT: Final = {"ns": "namespace", "prio": "class", "priority_class": "class"}
PLACES: Final = ("node", "task")
"""Conditions on binds."""
OPTIONS: Final = ("first", "then", "by", "reason")
"""What a measure takes beside its scope."""


class JobScope(Struct, frozen=True):
    """Jobs, by conditions that all hold; `places`: conditions on binds; `options`: what else a measure takes."""

    conditions: tuple[ScopeCondition, ...] = ()
    places: tuple[ScopeCondition, ...] = ()
    options: tuple[tuple[str, str], ...] = ()

    def jobs(self, record: RunRecord) -> list[RecordedJob]:
        """Return the jobs in this scope."""
        return [job for job in record.jobs if self.holds(job)]

    def holds(self, job: RecordedJob) -> bool:
        """Return whether a job is in this scope."""
        return all(_holds(condition, job) for condition in self.conditions)

    def option(self, name: str) -> str:
        """Return an option, "" for none."""
        return next((value for key, value in self.options if key == name), "")


def _holds(condition: ScopeCondition, job: RecordedJob) -> bool:
    key, op, wanted = condition
    if key in NUMBERS:
        return OPERATORS["==" if op == "=" else op](float(job.pods), float(wanted))
    if key.startswith("label."):
        found = job.labels.get(key.removeprefix("label."), "")
    else:
        named = {"name": job.name, "namespace": job.namespace, "queue": job.queue, "class": job.priority_class}
        found = named[key]
    return fnmatchcase(found, wanted) == (op == "=")


def scope_of(text: str, *, placing: bool, options: Sequence[str]) -> JobScope:
    """Read the conditions between the brackets of a measure. Raises MeasureError."""
    jobs, places, chosen = list[ScopeCondition](), list[ScopeCondition](), list[tuple[str, str]]()
    for part in filter(None, (one.strip() for one in text.split(","))):
        found = _CONDITION.fullmatch(part)
        if found is None:
            raise MeasureError("measure", f"expected conditions such as queue=prod or pods>=8, was {part!r}")
        key, op, value = SHORT.get(found[1].strip(), found[1].strip()), found[2], found[3].strip()
        if key in options:
            chosen.append((key, value))
        elif placing and (key in PLACES or key.startswith("node.")):
            places.append(ScopeCondition(key, op, value))
        else:
            jobs.append(_condition(key, op, value, options))
    return JobScope(tuple(jobs), tuple(places), tuple(chosen))


def _condition(key: str, op: str, value: str, options: Sequence[str]) -> ScopeCondition:
    if key in NUMBERS:
        if not value.isdecimal():
            raise MeasureError("measure", f"{key}: expected a whole number, was {value!r}")
    elif key not in TEXTS and not key.startswith("label."):
        known = ", ".join((*TEXTS, *NUMBERS, "label.KEY", *options))
        raise MeasureError("measure", f"unknown condition {key!r}; known: {known}")
    elif op not in ("=", "!="):
        raise MeasureError("measure", f"{key}: expected = or !=, was {op!r}")
    return ScopeCondition(key, op, value)


# --- Measures

HOWS: Final[Mapping[str, Callable[[list[float]], float]]] = {
    "max": lambda values: max(values, default=0.0),
    "mean": lambda values: sum(values) / len(values) if values else 0.0,
    "p95": lambda values: quantile(sorted(values), 0.95) or 0.0,
    "p50": lambda values: quantile(sorted(values), 0.5) or 0.0,
    "min": lambda values: min(values, default=0.0),
}


class AskedMeasure(NamedTuple):
    """A measure as it is asked: the jobs in scope, `how` it sums up, and the horizon of both sides."""

    record: RunRecord
    scope: JobScope
    how: str
    horizon_s: float

    def jobs(self) -> list[RecordedJob]:
        """Return the jobs in scope that had come by the horizon."""
        return self.scope.jobs(self.record)


def _wait(asked: AskedMeasure) -> float:
    return HOWS[asked.how]([job.wait_s(asked.horizon_s) for job in asked.jobs()])


def _slowdown(asked: AskedMeasure) -> float:
    """Bounded slowdown of all submitted jobs; one that has not ended counts with what it has waited."""
    return HOWS[asked.how]([slowdown_of(job, asked.horizon_s) for job in asked.jobs()])


def slowdown_of(job: RecordedJob, horizon_s: float) -> float:
    """Return how many times as long as its run a job took; runs of less than ten seconds count as ten."""
    run_s = job.run_s if job.run_s is not None else 0.0
    return bounded_slowdown(job.wait_s(horizon_s), run_s)


def _unstarted(asked: AskedMeasure) -> float:
    return float(sum(job.started is None for job in asked.jobs()))


def _started(asked: AskedMeasure) -> float:
    return float(sum(job.started is not None for job in asked.jobs()))


def _unended(asked: AskedMeasure) -> float:
    return float(sum(job.ended is None for job in asked.jobs()))


def _count(asked: AskedMeasure) -> float:
    return float(len(asked.jobs()))


def _evictions(asked: AskedMeasure) -> float:
    """Evictions of pods of jobs in scope; `max`: of one job, `for_one`: for one job, `again`: of one pod."""
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
    """Return pods of jobs in scope that got a node in scope."""
    return float(len(_binds(asked)))


def _where(asked: AskedMeasure) -> float:
    """Return pods of jobs in scope that got a node whose name begins so."""
    return float(sum(node.startswith(asked.how) for _, _, node in _binds(asked)))


def _together(asked: AskedMeasure) -> float:
    """Return jobs in scope with two pods on one node."""
    nodes: dict[str, list[str]] = {}
    for job, _, node in _binds(asked):
        nodes.setdefault(job, []).append(node)
    return float(sum(len(set(found)) < len(found) for found in nodes.values()))


def _domains(asked: AskedMeasure) -> float:
    """How many domains the pods of one job span: by a node label, or by a tier of HyperNodes (`by=tier1`)."""
    by, nodes = asked.scope.option("by") or "kubernetes.io/hostname", asked.record.nodes
    spans: dict[str, set[str]] = {}
    for job, _, name in _binds(asked):
        node = nodes.get(name)
        domain = "" if node is None else node.domains.get(by) or node.labels.get(by) or ""
        spans.setdefault(job, set()).add(domain or name)
    return HOWS[asked.how]([float(len(found)) for found in spans.values()])


def _inversions(asked: AskedMeasure) -> float:
    """Pairs of a job `first=` and a job `then=` where the second started before the first."""
    record, horizon = asked.record, asked.horizon_s
    inside = asked.jobs()
    first, then = asked.scope.option("first"), asked.scope.option("then")
    early = [_started_at(job, horizon) for job in inside if fnmatchcase(job.name, first)]
    late = [job.started for job in inside if fnmatchcase(job.name, then) and job.started is not None]
    return float(sum(one > other for one in early for other in late)) if record.jobs else 0.0


def _started_at(job: RecordedJob, horizon_s: float) -> float:
    return horizon_s if job.started is None else job.started


def _pending(asked: AskedMeasure) -> float:
    """Return jobs in scope that wait at the end for a reason (`reason=`, any without)."""
    reason, pending = asked.scope.option("reason") or "*", asked.record.pending
    return float(sum(fnmatchcase(pending[job.job], reason) for job in asked.jobs() if job.job in pending))


def _binds(asked: AskedMeasure) -> list[tuple[str, str, str]]:
    """Job, pod and last node of each pod in scope."""
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


class MeasureRow(NamedTuple):
    """A measure: how it is reckoned, how it may be summed up (the first is the default; None: any word), its unit, and
    True if it only grows with time, so that an upper bound is broken for good."""

    reckon: Callable[[AskedMeasure], float]
    hows: tuple[str, ...] | None = ("",)
    unit: str = ""
    grows: bool = False
    places: bool = False
    options: tuple[str, ...] = ()
    whole: bool = False


SPREAD: Final = ("mean", "max", "p95", "p50", "min")
MEASURES: Final[Mapping[str, MeasureRow]] = {
    "wait": MeasureRow(_wait, SPREAD, "s"),
    "slowdown": MeasureRow(_slowdown, SPREAD),
    "unstarted": MeasureRow(_unstarted),
    "started": MeasureRow(_started),
    "unended": MeasureRow(_unended),
    "jobs": MeasureRow(_count),
    "evictions": MeasureRow(
        _evictions, ("", "max", "again", "for_one", "of_equal", "within_share", "not_youngest"), grows=True
    ),
    "lostcpu": MeasureRow(_lost_cpu, unit="core s", grows=True),
    "lostgpu": MeasureRow(_lost_gpu, unit="card s", grows=True),
    "util": MeasureRow(_utilisation, None, whole=True),
    "frag": MeasureRow(_fragmentation, None, whole=True),
    "makespan": MeasureRow(_makespan, unit="s", whole=True),
    "placed": MeasureRow(_placed, places=True),
    "where": MeasureRow(_where, None, places=True),
    "together": MeasureRow(_together, places=True),
    "domains": MeasureRow(_domains, SPREAD, places=True, options=("by",)),
    "inversions": MeasureRow(_inversions, options=("first", "then")),
    "pending": MeasureRow(_pending, options=("reason",)),
}


# --- Expectations


class ExpectedBound(Struct, frozen=True):
    """A number; or `of_base`: that of base × `factor` + `value`."""

    value: float
    of_base: bool = False
    factor: float = 1.0

    def at(self, base: float) -> float:
        """Return the number that holds where base has this measure."""
        return base * self.factor + self.value if self.of_base else self.value


class Expectation(Struct, frozen=True):
    """What is expected: `measure` and `op` as written, `bound` read, `said` the bound as written."""

    name: str
    measure: str
    what: str
    how: str
    scope: JobScope
    op: str
    bound: ExpectedBound
    said: str

    @property
    def text(self) -> str:
        """Return it in one line."""
        return f"{self.measure} {self.op} {self.said}"

    def value(self, record: RunRecord, horizon_s: float) -> float:
        """Return the measure of a run."""
        found = MEASURES[self.what].reckon(AskedMeasure(record, self.scope, self.how, horizon_s))
        return round(found, 4)

    def is_met(self, value: float, base: float) -> bool:
        """Return whether a value is as expected, where base has that of its own."""
        return OPERATORS[self.op](value, self.bound.at(base))


def expectation_of(name: str, measure: str, op: str, value: float | str) -> Expectation:
    """Read an expectation. Raises MeasureError."""
    what, how, scope = _measure(measure)
    said = value if isinstance(value, str) else f"{value:g}"
    return Expectation(name or f"{measure} {op} {said}", measure, what, how, scope, op, _bound(value), said)


def _measure(text: str) -> tuple[str, str, JobScope]:
    found = _MEASURE.fullmatch(text.strip())
    known = None if found is None else MEASURES.get(found[1])
    if found is None or known is None:
        raise MeasureError("measure", f"unknown measure {text!r}; known: {', '.join(MEASURES)}")
    how = found[2] or ("" if known.hows is None else known.hows[0])
    if known.hows is None:
        if not how:
            raise MeasureError("measure", f"{found[1]}: expected {found[1]}.NAME, such as {found[1]}.cpu")
    elif how not in known.hows:
        raise MeasureError("measure", f"{found[1]}: expected one of {', '.join(filter(None, known.hows))}, was {how!r}")
    scope = scope_of(found[3] or "", placing=known.places, options=known.options)
    if found[1] == "inversions" and not (scope.option("first") and scope.option("then")):
        raise MeasureError("measure", "inversions: expected [first=NAME,then=NAME]")
    if reason := scope.option("reason"):
        _demand_code(reason)
    if known.whole and scope != JobScope():
        raise MeasureError("measure", f"{found[1]} is of the whole run: it takes no scope")
    return found[1], how, scope


def _demand_code(reason: str) -> None:
    """Refuse a reason that no job ever waits for; a glob is taken as it is."""
    codes = [each.value for each in WaitCode]
    if not any(letter in reason for letter in "*?[") and reason not in codes:
        raise MeasureError("measure", f"reason: unknown code {reason!r}; known: {', '.join(codes)}")


def _bound(said: float | str) -> ExpectedBound:
    if not isinstance(said, str):
        return ExpectedBound(float(said))
    found = _BASE.fullmatch(said.strip())
    if found is None:
        return ExpectedBound(_number(said))
    if found[1] is None:
        return ExpectedBound(0.0, of_base=True)
    sign = 1.0 if found[1] == "+" else -1.0
    if found[2].endswith("%"):
        return ExpectedBound(0.0, of_base=True, factor=1.0 + sign * _number(found[2].removesuffix("%")) / 100)
    return ExpectedBound(sign * _number(found[2]), of_base=True)


def _number(said: str) -> float:
    try:
        return float(said)
    except ValueError:
        seconds = duration_s(said.strip())
        if seconds is None:
            expected = "expected a number, a duration such as 90s, or base, base + 10%, base + 30s"
            raise MeasureError("value", f"{expected}; was {said!r}") from None
        return seconds
