# SPDX-License-Identifier: Apache-2.0
"""Judgements: each expectation on both sides of each workload, and what it means that it holds or fails."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import sqrt
from typing import Final, NamedTuple

from msgspec import Struct

from pumice.questions.gate.expectations import MEASURES, OPERATORS, UPPER, Expectation
from pumice.questions.gate.record import RunRecord

WAITED_S: Final = 2.0
"""A job waited that has not started after so long; less is the time that two cycles take."""
ONE_SIDED: Final = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83)
"""Student's t by degrees of freedom from 1 on: a mean above nought by so many standard errors is above it in 19 cases
of 20."""
MANY: Final = 1.65
"""For more degrees of freedom."""


class Judgement(StrEnum):
    """The verdict on an expectation."""

    OK = "ok"
    FAILS = "fails under head"
    BASE_FAILS = "base fails already"
    FIXED = "head fixes it"
    BOTH = "both fail"
    EMPTY = "empty"
    UNDECIDED = "not decided"


class Stakes(Struct, frozen=True):
    """The numbers behind a verdict: jobs in scope, those that waited, evictions of or for them, pods of them that were
    placed; the greater of both sides."""

    jobs: int = 0
    waited: int = 0
    evictions: int = 0
    placed: int = 0


class Judged(Struct, frozen=True):
    """One expectation on one workload. `base`, `head`: the measure of the first draw; None: it is not known.
    `failed`: draws of either side in which it does not hold, of so many `draws`.
    """

    name: str
    workload: str
    text: str
    verdict: Judgement
    base: float | None
    head: float | None
    unit: str
    stakes: Stakes
    draws: int = 1
    base_failed: int = 0
    head_failed: int = 0
    why: str = ""


class Pair(NamedTuple):
    """One draw of a workload under both policies, and the horizon at which both are measured."""

    base: RunRecord
    head: RunRecord

    @property
    def horizon_s(self) -> float:
        """Return the horizon of both: of runs until nothing more happens the later one."""
        if self.head.stopped:
            return self.head.horizon_s
        return max(self.base.horizon_s, self.head.horizon_s)


def judge(expectation: Expectation, workload: str, pairs: Sequence[Pair]) -> Judged:
    """Judge an expectation by all draws of a workload."""
    base = [expectation.value(pair.base, max(pair.base.horizon_s, _common(pair))) for pair in pairs]
    head = [expectation.value(pair.head, pair.horizon_s) for pair in pairs]
    unknown = any(_is_open(expectation, pair, value) for pair, value in zip(pairs, head, strict=True))
    met = [
        (expectation.is_met(one, one), expectation.is_met(other, one)) for one, other in zip(base, head, strict=True)
    ]
    base_failed, head_failed = sum(not one for one, _ in met), sum(not other for _, other in met)
    stakes = stakes_of(expectation, pairs[0])
    verdict = _verdict(expectation, base, head, base_failed, head_failed)
    if unknown:
        verdict = Judgement.BASE_FAILS if base_failed * 2 > len(pairs) else Judgement.UNDECIDED
    elif verdict is Judgement.OK and not _is_at_stake(expectation, stakes):
        verdict = Judgement.EMPTY
    return Judged(
        expectation.name,
        workload,
        expectation.text,
        verdict,
        base[0],
        None if unknown else head[0],
        MEASURES[expectation.what].unit,
        stakes,
        len(pairs),
        base_failed,
        head_failed,
    )


def _common(pair: Pair) -> float:
    return pair.base.horizon_s if pair.head.stopped else pair.head.horizon_s


def _is_open(expectation: Expectation, pair: Pair, value: float) -> bool:
    """Return whether a run that ended early leaves it open."""
    if not pair.head.stopped:
        return False
    return not (is_final(expectation) and not OPERATORS[expectation.op](value, expectation.bound.value))


def is_final(expectation: Expectation) -> bool:
    """Return whether an expectation that a part of a run breaks stays broken, however the run goes on."""
    grows = MEASURES[expectation.what].grows or (expectation.what, expectation.how) == ("wait", "max")
    return grows and expectation.op in UPPER and not expectation.bound.of_base


def _verdict(
    expectation: Expectation, base: Sequence[float], head: Sequence[float], base_failed: int, head_failed: int
) -> Judgement:
    draws = len(base)
    if expectation.bound.of_base and draws > 1 and expectation.op in ("<=", "<", ">=", ">"):
        return Judgement.FAILS if _differs(expectation, base, head) else Judgement.OK
    if (head_failed - base_failed) * 2 > draws:
        return Judgement.FAILS
    if (base_failed - head_failed) * 2 > draws:
        return Judgement.FIXED
    if head_failed * 2 > draws and base_failed * 2 > draws:
        return Judgement.BOTH
    if head_failed * 2 > draws or base_failed * 2 > draws:
        return Judgement.UNDECIDED  # both sides break it in about half of the draws: it is within the noise
    return Judgement.OK


def _differs(expectation: Expectation, base: Sequence[float], head: Sequence[float]) -> bool:
    """Return whether head is beyond the bound of base, by the mean of the pairs and its spread."""
    sign = 1.0 if expectation.op in ("<=", "<") else -1.0
    beyond = [sign * (other - expectation.bound.at(one)) for one, other in zip(base, head, strict=True)]
    count = len(beyond)
    mean = sum(beyond) / count
    spread = sqrt(sum((each - mean) ** 2 for each in beyond) / (count - 1) / count)
    factor = ONE_SIDED[count - 2] if count - 2 < len(ONE_SIDED) else MANY
    return mean - factor * spread > 0


# --- What was at stake


def stakes_of(expectation: Expectation, pair: Pair) -> Stakes:
    """Return what was at stake for an expectation: the greater count of both sides."""
    one, other = (_stakes(expectation, record, pair.horizon_s) for record in pair)
    return Stakes(
        max(one.jobs, other.jobs),
        max(one.waited, other.waited),
        max(one.evictions, other.evictions),
        max(one.placed, other.placed),
    )


def _stakes(expectation: Expectation, record: RunRecord, horizon_s: float) -> Stakes:
    jobs = expectation.scope.jobs(record)
    inside = {job.job for job in jobs}
    evictions = sum(each.job in inside or each.by in inside for each in record.evictions)
    waited = sum(job.wait_s(horizon_s) > WAITED_S for job in jobs)
    return Stakes(len(jobs), waited, evictions, sum(bind.job in inside for bind in record.binds))


def _is_at_stake(expectation: Expectation, stakes: Stakes) -> bool:
    if MEASURES[expectation.what].places:
        return stakes.placed > 0
    return stakes.waited > 0 or stakes.evictions > 0
