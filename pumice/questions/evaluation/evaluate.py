# SPDX-License-Identifier: Apache-2.0
"""`pumice.evaluate`: figures of a policy on workloads, over seeds, with intervals. Sweeps, gates, searches and
environments for learning run policies in the same way, and judge by the same measures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from functools import partial
from math import sqrt
from pathlib import Path
from statistics import NormalDist, fmean, stdev
from typing import Any, Final, Literal, NamedTuple, cast

from msgspec import Struct
from msgspec.structs import replace

from pumice.config.unwrap import scheduler_document
from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import Object, is_mapping
from pumice.errors import InputError
from pumice.executors import Executors, StandingExecutors, in_threads, lending, local
from pumice.plugins.loader import identities
from pumice.questions.evaluation.kept import KeptResults, run_missing
from pumice.questions.evaluation.policy import Policy, installed
from pumice.questions.evaluation.sandbox import Sandbox, sandboxed
from pumice.questions.evaluation.task import EvaluatedFigures, EvaluationTask, evaluated
from pumice.questions.evaluation.workload import EvaluatedWorkload, seeds_of
from pumice.questions.gate.expectations import Expectation, expectation_of
from pumice.questions.gate.gate import wanted_by
from pumice.questions.gate.policy import WrittenExpectation
from pumice.questions.gate.scopes import MeasureError
from pumice.results import Result

Direction = Literal["minimise", "maximise"]
DIRECTIONS: Final[tuple[Direction, ...]] = ("minimise", "maximise")
WITHIN: Final = 0.95
"""Probability with which an interval holds the mean, if figures of seeds are spread as a bell."""


# --- Objectives


class Objective(NamedTuple):
    """A measure to make small or large, as expectations of the gate have it."""

    direction: Direction
    measure: str

    @property
    def text(self) -> str:
        """Return it as it is written."""
        return f"{self.direction} {self.measure}"

    def is_better(self, value: float, other: float) -> bool:
        """Return whether a value is better than another one."""
        return value < other if self.direction == "minimise" else value > other


def objective_of(text: str) -> Objective:
    """Read `minimise MEASURE` or `maximise MEASURE`. Raises InputError."""
    direction, _, measure = text.strip().partition(" ")
    for known in DIRECTIONS:
        if direction == known and measure.strip():
            demand_measure(measure.strip())
            return Objective(known, measure.strip())
    expected = "expected an objective such as 'minimise wait.mean' or 'maximise util.gpu'"
    raise InputError(f"{expected}, was {text!r}", path="objective")


def demand_measure(text: str) -> Expectation:
    """Return a measure as it is asked of a record. Raises InputError for an unknown one."""
    try:
        found = expectation_of("", text, "==", 0.0)
    except MeasureError as error:
        raise InputError(str(error), path="objective") from error
    return found


def constraint_of(said: Mapping[str, Any] | WrittenExpectation) -> Expectation:
    """Read an expectation: a mapping with `measure`, `op` and `value`, which has no base. Raises InputError."""
    parts = said if is_mapping(said) else {name: getattr(said, name) for name in ("name", "measure", "op", "value")}
    missing = [name for name in ("measure", "op", "value") if name not in parts]
    if missing:
        raise InputError(f"expected {', '.join(missing)}", path="expect")
    try:
        found = expectation_of(str(parts.get("name", "")), parts["measure"], parts["op"], parts["value"])
    except MeasureError as error:
        raise InputError(str(error), path="expect") from error
    if found.bound.of_base:
        raise InputError("a constraint has no base: give a number or a duration", path="expect")
    return found


# --- Figures over seeds


class Interval(Struct, frozen=True):
    """A figure over seeds: `values` in their order, the `mean`, and the span that holds the true mean in 19 cases of 20
    (Student's t); null with one seed.
    """

    mean: float
    low: float | None
    high: float | None
    values: list[float]

    @classmethod
    def of(cls, values: Sequence[float]) -> Interval:
        """Return the interval of values, one at least."""
        mean, count = fmean(values), len(values)
        if count < 2:
            return cls(round(mean, 6), None, None, list(values))
        reach = student_t(count - 1) * stdev(values) / sqrt(count)
        return cls(round(mean, 6), round(mean - reach, 6), round(mean + reach, 6), list(values))


FEW: Final = (12.706, 4.303, 3.182, 2.776, 2.571)
"""Student's t by degrees of freedom from 1 to 5, where the series is not exact enough."""


def student_t(degrees: int) -> float:
    """Return how many standard errors hold a mean with the probability `WITHIN`: by a table, or by the Cornish-Fisher
    series (Abramowitz and Stegun, 26.7.5), exact to a thousandth from 6 degrees of freedom on.
    """
    if degrees <= len(FEW):
        return FEW[degrees - 1]
    z = NormalDist().inv_cdf((1 + WITHIN) / 2)
    first = (z**3 + z) / (4 * degrees)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)
    return z + first + second + third


class WorkloadResult(Struct, frozen=True):
    """Figures on one workload: by measure over the seeds; `broken`: constraints with the number of seeds that break
    them; processor seconds of all its runs (when they ran), and `problems`, each once.
    """

    figures: dict[str, Interval]
    broken: dict[str, int]
    cpu_s: float
    failed_answers: int = 0
    problems: list[str] = []


class Evaluation(Result, kw_only=True, tag="evaluate/1"):
    """An evaluation. `key` identifies the content of the policy; `objectives` as asked. `figures`: by measure, for each
    seed the mean of the workloads, over seeds; null where a run has none. `holds`: no constraint is broken and nothing
    went wrong. `cpu_s`: processor seconds of all runs, when they ran; `fresh`: runs that ran now, `kept` those that had
    run before.
    """

    policy: str
    key: str
    objectives: list[str]
    seeds: list[int]
    figures: dict[str, Interval] | None
    workloads: dict[str, WorkloadResult]
    holds: bool
    cpu_s: float
    fresh: int
    kept: int

    @property
    def scores(self) -> list[float]:
        """Return the mean of each objective, in their order. InputError where runs have no figures."""
        if self.figures is None:
            raise InputError("; ".join(self.problems) or "a run has no figures")
        return [self.figures[objective_of(each).measure].mean for each in self.objectives]

    @property
    def score(self) -> float:
        """Return the mean of the first objective. InputError where runs have no figures."""
        return self.scores[0]

    @property
    def problems(self) -> list[str]:
        """Return what went wrong, each once."""
        return list(dict.fromkeys(each for of in self.workloads.values() for each in of.problems))


# --- Evaluating


GivenWorkload = EvaluatedWorkload | str | Path | Sequence[Object]
WAIT: Final = "minimise wait.mean"


class Evaluator:
    """Evaluates policies on the same workloads and seeds, by the same objectives: draws are made once.

    `keep`: a folder where figures are kept by content. `executors`: an executor of the standard library, which stays
    open, one as `pumice.executors.dask(address)` gives it, or a function that makes one; None: in this process. With a
    `sandbox` each run has a process of its own, and `workers` run at a time. Processes stay for the next policy, until
    `close`. `plugins_dir`: the folder of the plugins that this process has installed, for the others.
    """

    def __init__(
        self,
        workloads: GivenWorkload | Sequence[EvaluatedWorkload],
        objective: str | Sequence[str] = WAIT,
        seeds: int | Sequence[int] = 1,
        *,
        expect: Sequence[Mapping[str, Any] | WrittenExpectation] = (),
        keep: str | Path | None = None,
        workers: int = 1,
        executors: Executors | AbstractContextManager[Executor] | None = None,
        sandbox: Sandbox | None = None,
        plugins_dir: str = "",
    ) -> None:
        said = (objective,) if isinstance(objective, str) else tuple(objective)
        self.objectives = tuple(map(objective_of, said))
        self.constraints = tuple(map(constraint_of, expect))
        self.workloads = _workloads(workloads)
        self.seeds = seeds_of(seeds)
        measures = [*(each.measure for each in self.objectives), *(each.measure for each in self.constraints)]
        self._measures = {text: demand_measure(text) for text in measures}
        self._wanted = wanted_by([*self._measures.values()])
        self._kept = KeptResults(None if keep is None else Path(keep), EvaluatedFigures)
        self._sandbox, self._plugins_dir = sandbox, plugins_dir
        several = in_threads if sandbox is not None else local
        made: Executors | None = partial(several, workers) if workers > 1 else None
        if executors is not None:
            made = lending(executors)
        self._executors = made if made is None or isinstance(made, StandingExecutors) else StandingExecutors(made)
        self._drawn: dict[tuple[str, int], Any] = {}

    def close(self) -> None:
        """End the processes that wait for the next policy. They end with the evaluator, too."""
        if isinstance(self._executors, StandingExecutors):
            self._executors.close()

    def __call__(
        self, policy: Policy | str | Path | Mapping[str, Any] | None, ended: Callable[[], None] = lambda: None
    ) -> Evaluation:
        """Return the evaluation of a policy. Raises ConfigError, InputError for one that cannot run; in a sandbox what
        its code raises is a problem of the result.
        """
        subject = Policy.of(policy).written
        self._check(subject)
        tasks = self._tasks(subject)
        keys = {each: task.key for each, task in tasks.items()}
        fresh = sum(self._kept.get(key) is None for key in set(keys.values()))
        work = evaluated if self._sandbox is None else partial(sandboxed, limits=self._sandbox)
        found = run_missing(
            work, {keys[each]: (task,) for each, task in tasks.items()}, self._kept, self._executors, ended
        )
        results = {
            workload.name: self._result([found[keys[workload.name, seed]] for seed in self.seeds])
            for workload in self.workloads
        }
        return Evaluation(
            policy=subject.name,
            key=subject.key,
            objectives=[each.text for each in self.objectives],
            seeds=list(self.seeds),
            figures=_over_workloads(results, self._measures),
            workloads=results,
            holds=not any(each.broken or each.problems for each in results.values()),
            cpu_s=round(sum(each.cpu_s for each in results.values()), 3),
            fresh=fresh,
            kept=len(set(keys.values())) - fresh,
        )

    def keys(self, policy: Policy) -> list[str]:
        """Return the keys of all runs of a policy: by these they are kept. Raises ConfigError, InputError."""
        return [task.key for task in self._tasks(policy.written).values()]

    def _tasks(self, policy: Policy) -> dict[tuple[str, int], EvaluationTask]:
        return {each: self._task(policy, *each) for each in self._runs()}

    def _runs(self) -> Iterator[tuple[str, int]]:
        return ((workload.name, seed) for workload in self.workloads for seed in self.seeds)

    def _check(self, policy: Policy) -> None:
        """Read the configuration once, before any run; untrusted code is not loaded for that."""
        if self._sandbox is None:
            with installed(policy.modules):
                parse_scheduler_config(policy.text, source=policy.name or "policy")
        else:
            scheduler_document(policy.text, policy.name or "policy")

    def _task(self, policy: Policy, name: str, seed: int) -> EvaluationTask:
        workload = next(each for each in self.workloads if each.name == name)
        run = self._drawn.get((name, seed))
        if run is None:
            run = self._drawn[name, seed] = workload.task(seed, "", "", self._wanted)
        own = () if self._sandbox is not None else tuple(identities().items())
        told = replace(
            run,
            config=policy.text,
            source=policy.name or "policy",
            plugins=own,
            plugins_dir=self._plugins_dir if own else "",
        )
        return EvaluationTask(told, tuple(self._measures), policy.modules, workload.placement)

    def _result(self, runs: Sequence[EvaluatedFigures]) -> WorkloadResult:
        whole = [each for each in runs if not each.problem]
        figures = {
            text: Interval.of([each.figures[text] for each in whole]) for text in (self._measures if whole else ())
        }
        broken = {
            each.text: count
            for each in self.constraints
            if (count := sum(not each.is_met(run.figures[each.measure], 0.0) for run in whole))
        }
        problems = [*(each.problem for each in runs if each.problem), *(said for each in runs for said in each.refused)]
        return WorkloadResult(
            figures,
            broken,
            round(sum(each.cpu_s for each in runs), 3),
            sum(each.failed for each in runs),
            list(dict.fromkeys(problems)),
        )


def evaluate(
    policy: Policy | str | Path | Mapping[str, Any] | None,
    workloads: GivenWorkload | Sequence[EvaluatedWorkload],
    objective: str | Sequence[str] = WAIT,
    seeds: int | Sequence[int] = 1,
    **options: Any,
) -> Evaluation:
    """Return how good a policy is on workloads: figures over seeds, with intervals (docs/reference/evaluate.md).

    `policy`: a `pumice.Policy`, or a scheduler.conf as its path, text or value (None: the stock one). `workloads`: a
    `pumice.Workload` or several, a path as `-f` takes it, or objects. `objective`: `minimise MEASURE` or `maximise
    MEASURE`, or several; measures are the gate's. `seeds`: how many draws, or which; 0 is the workload as it stands.
    `options` are those of `Evaluator`: `expect`, `keep`, `workers`, `executors`, `sandbox`. Raises ConfigError,
    InputError.
    """
    evaluator = Evaluator(workloads, objective, seeds, **options)
    try:
        return evaluator(policy)
    finally:
        evaluator.close()


def _over_workloads(results: Mapping[str, WorkloadResult], measures: Mapping[str, Any]) -> dict[str, Interval] | None:
    if any(each.problems or not each.figures for each in results.values()):
        return None
    return {
        text: Interval.of(
            [fmean(of) for of in zip(*(each.figures[text].values for each in results.values()), strict=True)]
        )
        for text in measures
    }


def _workloads(given: GivenWorkload | Sequence[EvaluatedWorkload]) -> tuple[EvaluatedWorkload, ...]:
    match given:
        case EvaluatedWorkload():
            return (given,)
        case str() | Path():
            return (EvaluatedWorkload.of_files(given),)
        case _ if given and all(isinstance(each, EvaluatedWorkload) for each in given):
            found = tuple(cast("Sequence[EvaluatedWorkload]", given))
            names = [each.name for each in found]
            if len(set(names)) != len(names):
                raise InputError(f"each workload needs a name of its own: {', '.join(names)}", path="workloads")
            return found
        case _ if given and all(is_mapping(each) for each in given):
            return (EvaluatedWorkload("workload", cast("Sequence[Object]", given)),)
        case _:
            raise InputError("expected a workload, several, a path or objects", path="workloads")
