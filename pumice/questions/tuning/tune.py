# SPDX-License-Identifier: Apache-2.0
"""A search: Optuna proposes settings, `Evaluator` judges them, and workloads that the search never saw have the last
word. Everything that it has tried lies in a folder, so that a search goes on where it was stopped.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from difflib import unified_diff
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from msgspec import Struct

from pumice.errors import InputError, demand
from pumice.executors import Executors, StandingExecutors
from pumice.questions.evaluation.evaluate import Evaluation, Evaluator, Objective, objective_of
from pumice.questions.evaluation.kept import content_key
from pumice.questions.evaluation.policy import Policy
from pumice.questions.tuning.spec import Dimension, SearchRange, TuneSpec, applied
from pumice.results import Result

BROKEN, SETTINGS = "broken", "settings"
TUNED: Final = "scheduler.conf"
PATIENCE: Final = 5
"""Trials before any is cut off."""


class TriedSettings(Struct, frozen=True):
    """Settings and their values of the objectives on the workloads of the search, in their order."""

    settings: dict[str, Any]
    values: list[float]


class TuneResult(Result, kw_only=True, tag="tune/1"):
    """A search: `trials` so far, of which `pruned` were cut off and `infeasible` broke a constraint. `front`: the best
    by the objectives (several where none is best in all); `chosen`: the settings of the first of them (null: none
    holds the constraints and is better). `before`, `after`: the configuration to begin with and the chosen one, on the
    workloads of the search, and on held-out ones (null without any). `config`, `page`: files; `diff`: of the
    configurations.
    """

    objectives: list[str]
    trials: int
    pruned: int
    infeasible: int
    front: list[TriedSettings]
    chosen: dict[str, Any] | None
    before: Evaluation
    after: Evaluation | None
    held_out_before: Evaluation | None
    held_out_after: Evaluation | None
    config: str | None
    page: str
    diff: list[str]


class SettingsSearch:
    """One search, in a folder. `executors` None: in this process."""

    def __init__(
        self, spec: TuneSpec, folder: Path, executors: Executors | None = None, seed: int = 0, plugins_dir: str = ""
    ) -> None:
        self._spec, self._folder, self._seed = spec, folder, seed
        folder.mkdir(parents=True, exist_ok=True)
        shared = None if executors is None else StandingExecutors(executors)
        make = partial(
            Evaluator,
            objective=spec.objectives,
            expect=spec.expect,
            keep=folder / "results",
            executors=shared,
            plugins_dir=plugins_dir,
        )
        self._by_seed = [make(spec.workloads, seeds=[seed]) for seed in range(spec.seeds)]
        self._whole = make(spec.workloads, seeds=spec.seeds)
        self._held_out = make(spec.held_out, seeds=spec.seeds) if spec.held_out else None
        self._objectives = [objective_of(each) for each in spec.objectives]
        self._optuna = demand("optuna", "tune", "Searches")
        before = Policy(spec.config, name="before")
        # Values of another search say nothing here: it has all that decides them but the number of trials in its name.
        self._name = content_key(spec.objectives, spec.expect, spec.space, self._whole.keys(before))
        self._before = self._whole(before)

    def run(self, ended: Callable[[], None] = lambda: None) -> TuneResult:
        """Try what is missing of the trials, and return the result. Raises ConfigError, InputError."""
        study = self._study()
        left = self._spec.trials - len(study.trials)
        if left > 0:
            study.optimize(self._try, n_trials=left, callbacks=[_calling(ended)])
        return self._result(study)

    def _study(self) -> Any:
        optuna = self._optuna
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        storages, several = demand("optuna.storages.journal", "tune", "Searches"), len(self._objectives) > 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            # Trials of an earlier run draw from the same source: the seed goes on with their number.
            storage = optuna.storages.JournalStorage(storages.JournalFileBackend(str(self._folder / "search.log")))
            study = optuna.create_study(
                storage=storage,
                study_name=self._name,
                load_if_exists=True,
                directions=[f"{each.direction.removesuffix('se')}ze" for each in self._objectives],
            )
            seed = self._seed + len(study.trials)
            sampler = optuna.samplers.NSGAIISampler if several else optuna.samplers.TPESampler
            study.sampler = sampler(seed=seed)
        study.pruner = optuna.pruners.MedianPruner(n_startup_trials=PATIENCE)
        return study

    def _try(self, trial: Any) -> Any:
        chosen = {name: suggested(trial, name, of) for name, of in self._spec.space.items()}
        trial.set_user_attr(SETTINGS, chosen)
        policy = Policy(applied(self._spec.config, chosen))
        values = list[list[float]]()
        for step, evaluator in enumerate(self._by_seed):
            found = evaluator(policy)
            trial.set_constraint(f"{BROKEN} {step}", float(broken_by(found)))
            values.append(found.scores)
            if len(self._objectives) == 1:
                trial.report(fmean(each[0] for each in values), step)
                if trial.should_prune():
                    raise self._optuna.TrialPruned
        return tuple(fmean(each) for each in zip(*values, strict=True))

    # --- the result

    def _is_better(self, tried: TriedSettings) -> bool:
        """Return whether settings are better in some objective than the configuration to begin with, or hold where it
        does not.
        """
        pairs = zip(self._objectives, tried.values, self._before.scores, strict=True)
        return not self._before.holds or any(of.is_better(value, before) for of, value, before in pairs)

    def _result(self, study: Any) -> TuneResult:
        states = self._optuna.trial.TrialState
        complete = [each for each in study.trials if each.state == states.COMPLETE]
        feasible = [each for each in complete if all(value <= 0 for value in each.constraints.values())]
        tried = [TriedSettings(each.user_attrs[SETTINGS], list(each.values)) for each in feasible]
        front = front_of(tried, self._objectives)
        chosen = front[0].settings if front and self._is_better(front[0]) else None
        text = None if chosen is None else applied(self._spec.config, chosen)
        after = None if text is None else Policy(text, name="after")
        held_out = self._held_out
        before = Policy(self._spec.config, name="before")
        result = TuneResult(
            objectives=[each.text for each in self._objectives],
            trials=len(study.trials),
            pruned=sum(each.state == states.PRUNED for each in study.trials),
            infeasible=len(complete) - len(feasible),
            front=front,
            chosen=chosen,
            before=self._before,
            after=None if after is None else self._whole(after),
            held_out_before=None if held_out is None else held_out(before),
            held_out_after=None if held_out is None or after is None else held_out(after),
            config=None if text is None else str(self._folder / TUNED),
            page=str(self._folder / "report.md"),
            diff=[] if text is None else diff_of(self._spec.config, text),
        )
        if text is not None:
            (self._folder / TUNED).write_text(text, "utf-8")
        (self._folder / "report.md").write_text(page_of(result), "utf-8")
        return result


def suggested(trial: Any, name: str, of: Dimension) -> Any:
    """Return the value of a dimension that the search proposes; choices may be lists, which Optuna keeps as texts."""
    if isinstance(of, SearchRange):
        if of.is_whole:
            return trial.suggest_int(name, int(of.low), int(of.high), log=of.log)
        return trial.suggest_float(name, of.low, of.high, log=of.log)
    return json.loads(trial.suggest_categorical(name, [json.dumps(each) for each in of]))


def broken_by(found: Evaluation) -> int:
    """Return how many runs break constraints. Raises InputError for runs without figures."""
    if found.problems:
        raise InputError("; ".join(found.problems))
    return sum(count for of in found.workloads.values() for count in of.broken.values())


def front_of(tried: Sequence[TriedSettings], objectives: Sequence[Objective]) -> list[TriedSettings]:
    """Return the settings than which none is better in one objective and as good in the others; the best by the first
    objective comes first, and of equal ones the one tried first stays.
    """

    def beats(one: TriedSettings, other: TriedSettings) -> bool:
        pairs = list(zip(objectives, one.values, other.values, strict=True))
        return not any(of.is_better(b, a) for of, a, b in pairs) and any(of.is_better(a, b) for of, a, b in pairs)

    distinct = {tuple(each.values): each for each in reversed(tried)}.values()
    found = [each for each in distinct if not any(beats(other, each) for other in distinct)]
    return sorted(found, key=lambda each: each.values[0], reverse=objectives[0].direction == "maximise")


def diff_of(before: str, after: str) -> list[str]:
    """Return the lines that differ, as `diff -u` shows them; both in the form of `applied`."""
    plain = applied(before, {})
    lines = unified_diff(plain.splitlines(), after.splitlines(), "before", "after", lineterm="")
    return list(lines)


def page_of(result: TuneResult) -> str:
    """Return the page of a search, in Markdown."""
    lines = ["# What the search found", ""]
    lines += [f"{result.trials} trials; {result.pruned} cut off, {result.infeasible} broke a constraint.", ""]
    lines += ["| workloads | objective | before | after |", "|---|---|---|---|"]
    pairs = [("searched", result.before, result.after), ("held out", result.held_out_before, result.held_out_after)]
    for name, before, after in pairs:
        for text in result.objectives if before is not None else ():
            measure = objective_of(text).measure
            lines.append(f"| {name} | {text} | {_shown(before, measure)} | {_shown(after, measure)} |")
    if result.chosen is None:
        lines += ["", "Nothing better that holds the constraints was found."]
    if result.held_out_before is None:
        lines += ["", "Nothing was held out: what the search gained may be of these workloads alone."]
    if result.diff:
        lines += ["", "```diff", *result.diff, "```"]
    lines.append("")
    return "\n".join(lines)


def _shown(found: Evaluation | None, measure: str) -> str:
    if found is None or found.figures is None:
        return "-"
    figure = found.figures[measure]
    span = "" if figure.low is None else f" ({figure.low:g} to {figure.high:g})"
    return f"{figure.mean:g}{span}"


def _calling(ended: Callable[[], None]) -> Callable[[Any, Any], None]:
    """Return it as Optuna calls: with the study and the trial."""

    def call(study: Any, trial: Any) -> None:
        ended()

    return call
