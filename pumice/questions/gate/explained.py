# SPDX-License-Identifier: Apache-2.0
"""An explanation of a failure has the smallest case that shows it, the first differing decision, and files to open."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from pumice.executors import in_thread
from pumice.questions.evaluation.kept import KeptResults, content_key
from pumice.questions.gate.cases import case_text
from pumice.questions.gate.differing import FirstDifference, first_difference
from pumice.questions.gate.expectations import Expectation
from pumice.questions.gate.gate import BASE, HEAD, GateVerdict, base_task, head_task
from pumice.questions.gate.judging import Judgement, Pair, Pairs, judge_draw
from pumice.questions.gate.policy import GatePolicy
from pumice.questions.gate.record import RunRecord
from pumice.questions.gate.reduce import counted, reduced
from pumice.questions.gate.run import RunTask, fork_of, run
from pumice.questions.gate.runner import Runner, key_of
from pumice.questions.gate.sides import PolicySides
from pumice.questions.gate.workloads import Trial, drawn
from pumice.questions.whatif.saving import save

FORM: Final = 1
"""Version of a kept explanation; others are not read."""
AFTER_S: Final = 1.0
"""Time that a run until nothing more happens is saved beyond its end, in seconds."""


class Explained(Struct, frozen=True):
    """Explains a failure of one expectation on one workload. `kept`: its part in the case; `jobs`, `nodes`: of the
    case; `tries`: pairs of runs that it took, `complete`: whether nothing more could be left out; `case`: the case as
    YAML; `files`: where it was kept; `commands` that open it.
    """

    name: str
    workload: str
    kept: str
    jobs: int
    nodes: int
    tries: int
    complete: bool
    case: str
    difference: FirstDifference | None = None
    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


class GateReport(GateVerdict, kw_only=True, tag="gate/1"):
    """Verdict on a change of policy, with a small case for each workload with a failure (`failures`)."""

    failures: list[Explained]

    @classmethod
    def of(cls, verdict: GateVerdict, failures: Sequence[Explained]) -> GateReport:
        """Return a verdict and its failures as one report."""
        return cls(**msgspec.structs.asdict(verdict), failures=list(failures))


def explained(
    result: GateVerdict,
    trials: Sequence[Trial],
    found: Pairs,
    sides: PolicySides,
    policy: GatePolicy,
    limit: float,
    folder: Path | None,
    runner: Runner,
) -> Iterator[Explained]:
    """Explain the first expectation of each workload that fails under head. `limit`: work for each; `folder`: where
    cases and journals are kept, None: nowhere; `runner`: what it keeps is not found out again.
    """
    kept = KeptResults(runner.folder, Explained, "why")
    for trial in trials:
        failing = next(
            (each for each in result.expectations if each.workload == trial.name and each.verdict is Judgement.FAILS),
            None,
        )
        if failing is None:
            continue
        expectation = next(each for each in trial.expect if (each.name, each.text) == (failing.name, failing.text))
        pairs = found[trial.name]
        draw = next((draw for draw, pair in enumerate(pairs) if judge_draw(expectation, pair).tells), 0)
        shown = replace(trial, objects=drawn(trial.objects, policy.noise, draw), is_case=True)
        failure = _Failure(shown, expectation, pairs[draw], sides, policy, limit)
        if folder is not None:  # an explanation that names files holds for their folder alone
            yield failure.explained(folder)
        else:
            key = failure.key(runner)
            yield kept.get(key) or kept.put(key, failure.explained(None))


class _Failure(NamedTuple):
    """A failure to explain: what fails in which runs, and the work that it may take."""

    trial: Trial
    expectation: Expectation
    pair: Pair
    sides: PolicySides
    policy: GatePolicy
    limit: float

    def key(self, runner: Runner) -> str:
        """Return the key of the explanation: a hash of all that decides it."""
        tasks = self._tasks(self.trial, self.pair.base)
        keys = [key_of(runner.with_plugins(task)) for task in tasks]
        return content_key(FORM, keys, self.trial.name, self.expectation, self.limit)

    def explained(self, folder: Path | None) -> Explained:
        """Cut the failure down, and return its explanation; files go into the folder."""
        trial, expectation, pair, sides, policy, limit = self
        smaller = None if limit <= 0 else reduced(trial, expectation, pair, sides, policy, limit)
        least = trial if smaller is None else smaller.trial
        kept = expectation if smaller is None else smaller.expectation
        shown_base = pair.base if smaller is None else run(base_task(least, sides, policy))
        base, head = self._tasks(least, shown_base)
        shown = pair if smaller is None else Pair(shown_base, run(head))
        name = f"{trial.name}: {expectation.name}"
        text = case_text(name, least.objects, [kept], least.workload.until_s)
        files, commands = _kept(name, text, (base, head), shown, folder)
        jobs, nodes = counted(least.objects)
        return Explained(
            expectation.name,
            trial.name,
            kept.text,
            jobs,
            nodes,
            0 if smaller is None else smaller.tries,
            smaller is not None and not smaller.exhausted,
            text,
            first_difference(base, head, shown),
            files,
            commands,
        )

    def _tasks(self, trial: Trial, base: RunRecord) -> tuple[RunTask, RunTask]:
        return base_task(trial, self.sides, self.policy), head_task(trial, self.sides, self.policy, base)


def _kept(
    name: str, text: str, tasks: tuple[RunTask, RunTask], pair: Pair, folder: Path | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Save the case and a journal of either side, and return the files and commands that open them."""
    if folder is None:
        return (), ()
    folder.mkdir(parents=True, exist_ok=True)
    slug = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:60]
    case = folder / f"{slug}.case.yaml"
    case.write_text(text, "utf-8")
    files = [str(case)]
    for side, task, record in zip((BASE, HEAD), tasks, pair, strict=True):
        journal = folder / f"{slug}.{side}.db"
        for old in folder.glob(f"{journal.name}*"):
            old.unlink()
        in_thread(
            save, fork_of(task), record.horizon_s + (AFTER_S if task.until_s is None else 0.0), task.seed, journal
        )
        files.append(str(journal))
    return tuple(files), tuple(_commands(files[-1], pair))


def _commands(journal: str, pair: Pair) -> Iterator[str]:
    """Yield commands that open head's journal at the job that waits longest."""
    known = (job for job in pair.head.jobs if not job.is_refused)  # the journal does not have the others
    waiting = max(known, key=lambda job: (job.started is None, job.wait_s(pair.head.horizon_s), job.job), default=None)
    if waiting is not None:
        yield f"pumice explain --db {journal} job {waiting.job}"
    yield f"pumice view {journal}"
    if waiting is not None:
        said = f'pumice.Cluster.of_journal("{journal}").explain("{waiting.job}").message'
        yield f"python -c 'import pumice; print({said})'"
