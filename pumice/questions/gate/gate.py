# SPDX-License-Identifier: Apache-2.0
"""The gate goes from a policy file to a verdict: it reports findings, then runs both futures of every workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from pumice.actors.runtime.clock import VirtualClock
from pumice.config.durations import duration_s
from pumice.core.objects.metadata import parse_time
from pumice.questions.gate.defaults import FILTERS, LOOPS, defaults
from pumice.questions.gate.demands import demands
from pumice.questions.gate.expectations import Expectation, limit_of
from pumice.questions.gate.filters import refused
from pumice.questions.gate.findings import findings, new_in
from pumice.questions.gate.judging import Judged, Judgement, Pair, Pairs, judge
from pumice.questions.gate.moved import Moved, moved
from pumice.questions.gate.policy import GatePolicy
from pumice.questions.gate.record import RunRecord
from pumice.questions.gate.run import RunTask, WantedFacts, WorkloadNames
from pumice.questions.gate.runner import PairTask, Runner
from pumice.questions.gate.sides import PolicySides, Side
from pumice.questions.gate.workloads import Trial, drawn, joined
from pumice.results import Result
from pumice.storage import codec

BASE, HEAD = "base", "head"


class GateVerdict(Result, kw_only=True):
    """Gives the verdict on a change of policy: `passes`, or why not. `findings`: those that are new in head,
    `mended`: those of base alone; `expectations` and `defaults`: their judgements on every workload; `moved`: the
    effects of the change; `counts`: the number of expectations by verdict.
    """

    passes: bool
    base: str
    head: str
    findings: list[str]
    mended: list[str]
    expectations: list[Judged]
    defaults: list[Judged]
    moved: list[Moved]
    counts: dict[str, int]
    stopped: dict[str, str]


# --- Tasks


def base_task(trial: Trial, sides: PolicySides, policy: GatePolicy, draw: int = 0) -> RunTask:
    """Return the run of base in a draw. A loop ends the run only where nothing else does."""
    return _task(trial, sides.base, sides, policy, draw)


def head_task(
    trial: Trial, sides: PolicySides, policy: GatePolicy, base: RunRecord | None = None, draw: int = 0
) -> RunTask:
    """Return the run of head in a draw. `base`: the run of base, where the run may end as soon as it is certain that
    head breaks what base keeps.
    """
    task = _task(trial, sides.head, sides, policy, draw)
    if base is None:
        return task
    kept = (each for each in trial.expect if each.bound.of_base or each.is_met(each.value(base, base.horizon_s), 0.0))
    limits = tuple(limit for each in kept if (limit := limit_of(each, base)) is not None)
    loops_count = not trial.is_case and LOOPS not in policy.defaults.off and not base.loops
    return msgspec.structs.replace(task, limits=limits, stops_at_loops=task.stops_at_loops or loops_count)


def _task(trial: Trial, side: Side, sides: PolicySides, policy: GatePolicy, draw: int) -> RunTask:
    workload = trial.workload
    return RunTask(
        codec.pack(joined(drawn(trial.objects, policy.noise, draw), side, sides.stated())),
        side.config,
        side.source,
        parse_time(workload.start) if workload.start else VirtualClock.start,
        workload.until_s,
        duration_s(workload.default_duration) or 0.0,
        wanted=wanted_by(trial.expect),
        stops_at_loops=workload.until_s is None,
        names=_names(trial, side.renamed),
    )


def _names(trial: Trial, renamed: Mapping[str, str]) -> WorkloadNames:
    """Return the workload's own names of objects that a side renames: two queues may have become one."""
    if not renamed:
        return WorkloadNames()
    jobs = demands(trial.objects)
    return WorkloadNames(
        tuple((job.name, job.queue) for job in jobs if job.queue in renamed),
        tuple((job.name, job.priority_class) for job in jobs if job.priority_class in renamed),
    )


def wanted_by(expect: Sequence[Expectation]) -> WantedFacts:
    """Return the facts that the expectations need and that cost time to compute."""
    asked = {(each.what, each.how) for each in expect}
    return WantedFacts(
        younger=("evictions", "not_youngest") in asked,
        shares=("evictions", "within_share") in asked,
        uses=any(what in ("util", "frag") for what, _ in asked),
        pending=any(what == "pending" for what, _ in asked),
    )


# --- Living through them


def lived(
    trials: Sequence[Trial],
    sides: PolicySides,
    policy: GatePolicy,
    runner: Runner,
    ended: Callable[[], None] = lambda: None,
) -> Pairs:
    """Run both futures of all workloads. A single draw of head ends as soon as its verdict is certain, which
    base's run is needed for; with more draws the mean of all decides, so each is lived to its end.
    """
    found = runner.pairs(pair_tasks(trials, sides, policy), ended)
    return by_workload(trials, found)


def pair_tasks(trials: Sequence[Trial], sides: PolicySides, policy: GatePolicy) -> dict[tuple[str, int], PairTask]:
    """Return both runs of each draw, by workload and draw."""
    return {
        (trial.name, draw): _pair_task(trial, sides, policy, draw, draws)
        for trial in trials
        for draws in [1 if trial.is_case else policy.noise.draws]
        for draw in range(draws)
    }


def by_workload(trials: Sequence[Trial], found: Mapping[tuple[str, int], Pair]) -> Pairs:
    """Return the pairs of each workload, in the order of its draws."""
    return {trial.name: [found[key] for key in sorted(found) if key[0] == trial.name] for trial in trials}


def _pair_task(trial: Trial, sides: PolicySides, policy: GatePolicy, draw: int, draws: int) -> PairTask:
    def head(base: RunRecord) -> RunTask:
        return head_task(trial, sides, policy, base if draws == 1 else None, draw)

    return PairTask(base_task(trial, sides, policy, draw), head_task(trial, sides, policy, draw=draw), head)


# --- The verdict


class ReadFindings(NamedTuple):
    """Contains findings without a run: sentences that are `new` in head, and sentences of base that head `mended`."""

    new: list[str]
    mended: list[str]


def found_by_reading(trials: Sequence[Trial], sides: PolicySides) -> ReadFindings:
    """Return the findings that are new in head and those of base alone, without a run."""
    new, mended = list[str](), list[str]()
    for trial in trials:
        base, head = (findings(side, joined(trial.objects, side, sides.stated())) for side in sides)
        new += new_in(head, base)
        mended += new_in(base, head)
    return ReadFindings(list(dict.fromkeys(new)), list(dict.fromkeys(mended)))


def judged(
    trials: Sequence[Trial], pairs: Pairs, sides: PolicySides, policy: GatePolicy
) -> tuple[list[Judged], list[Judged]]:
    """Return the judgements of every expectation, and of every default, on each workload."""
    expectations, standing = list[Judged](), list[Judged]()
    for trial in trials:
        drawn_pairs = pairs[trial.name]
        expectations += [judge(each, trial.name, drawn_pairs) for each in trial.expect]
        if not trial.is_case:
            standing += defaults(policy.defaults, trial.name, drawn_pairs[0])
            if FILTERS not in policy.defaults.off:
                standing.append(refused(trial, sides, drawn_pairs[0]))
    return expectations, standing


def verdict(
    sides: PolicySides, policy: GatePolicy, read: ReadFindings, trials: Sequence[Trial], pairs: Pairs
) -> GateVerdict:
    """Return the verdict on the change, from its findings and runs."""
    expectations, standing = judged(trials, pairs, sides, policy)
    counts = {each.value: sum(one.verdict is each for one in expectations) for each in Judgement}
    return GateVerdict(
        passes=not read.new
        and not any(is_failure(each, policy) for each in expectations)
        and not any(each.verdict is Judgement.FAILS for each in standing),
        base=sides.base.name,
        head=sides.head.name,
        findings=read.new,
        mended=read.mended,
        expectations=expectations,
        defaults=standing,
        moved=[moved(trial.name, pairs[trial.name][0]) for trial in trials if not trial.is_case],
        counts={name: count for name, count in counts.items() if count},
        stopped={name: found[0].head.stopped for name, found in pairs.items() if found[0].head.stopped},
    )


def is_failure(each: Judged, policy: GatePolicy) -> bool:
    """Return whether a judgement of an expectation fails the gate."""
    match each.verdict:
        case Judgement.FAILS:
            return True
        case Judgement.BOTH | Judgement.BASE_FAILS:
            return policy.both_fail
        case Judgement.EMPTY:
            return policy.empty_fails
        case Judgement.OK | Judgement.FIXED | Judgement.UNDECIDED:
            return False
