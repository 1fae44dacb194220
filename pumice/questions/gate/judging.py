# SPDX-License-Identifier: Apache-2.0
"""A judgement says whether an expectation holds on both sides of a workload, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import sqrt
from typing import Final, NamedTuple

from msgspec import Struct

from pumice.questions.gate.expectations import Expectation, limit_of
from pumice.questions.gate.measures import MEASURES
from pumice.questions.gate.record import RunRecord
from pumice.questions.gate.scopes import OPERATORS

WAITED_S: Final = 2.0
"""Time after which a job without a start counts as waiting, in seconds; two cycles take less."""
ONE_SIDED: Final = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83)
"""Student's t by degrees of freedom from 1 on: a mean so many standard errors above 0 is above 0 in 19 cases of 20."""
MANY: Final = 1.65
"""Student's t for more degrees of freedom."""


class Judgement(StrEnum):
    """Names the verdict on an expectation."""

    OK = "ok"
    FAILS = "fails under head"
    BASE_FAILS = "base fails already"
    FIXED = "head fixes it"
    BOTH = "both fail"
    EMPTY = "empty"
    UNDECIDED = "not decided"


class Stakes(Struct, frozen=True):
    """Counts what a verdict rests on: jobs in scope, those that waited, evictions of or for them, pods of them that
    were placed; the greatest of both sides and all draws.
    """

    jobs: int = 0
    waited: int = 0
    evictions: int = 0
    placed: int = 0


class Judged(Struct, frozen=True):
    """Judges one expectation on one workload. `base`, `head`: the measure of the first draw; None: a run ended too
    early. `failed`: draws of either side in which it does not hold, of so many `draws`.
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
    """Contains the runs of one draw of a workload under both policies."""

    base: RunRecord
    head: RunRecord

    @property
    def is_whole(self) -> bool:
        """Return whether both runs reached their ends."""
        return not (self.base.stopped or self.head.stopped)

    @property
    def horizon_s(self) -> float:
        """Return the moment at which both runs can be compared: the later end of runs until nothing more happens."""
        both = self.base.horizon_s, self.head.horizon_s
        return max(both) if self.is_whole else min(both)

    def value(self, expectation: Expectation, record: RunRecord) -> float:
        """Return the measure of one run at its own end: where both are whole, the ends are equal."""
        return expectation.value(record, self.horizon_s if self.is_whole else record.horizon_s)


Pairs = Mapping[str, Sequence[Pair]]
"""The pairs of each workload by its name, in the order of their draws."""


class JudgedDraw(NamedTuple):
    """Contains the measures of both sides in one draw, and whether they are as expected (None: it ended too early)."""

    base: float
    head: float
    base_met: bool | None
    head_met: bool | None

    @property
    def tells(self) -> bool:
        """Return whether base holds the expectation and head breaks it."""
        return self.base_met is True and self.head_met is False


def judge(expectation: Expectation, workload: str, pairs: Sequence[Pair]) -> Judged:
    """Judge an expectation on all draws of a workload."""
    draws = [judge_draw(expectation, pair) for pair in pairs]
    base_failed, head_failed = sum(one.base_met is False for one in draws), sum(one.head_met is False for one in draws)
    stakes = stakes_of(expectation, pairs)
    verdict = _verdict(expectation, draws, base_failed, head_failed)
    if verdict is Judgement.OK and not _is_at_stake(expectation, stakes):
        verdict = Judgement.EMPTY
    return Judged(
        expectation.name,
        workload,
        expectation.text,
        verdict,
        None if draws[0].base_met is None else draws[0].base,
        None if draws[0].head_met is None else draws[0].head,
        MEASURES[expectation.what].unit,
        stakes,
        len(pairs),
        base_failed,
        head_failed,
    )


def judge_draw(expectation: Expectation, pair: Pair) -> JudgedDraw:
    """Judge an expectation on one draw."""
    base, head = (pair.value(expectation, record) for record in pair)
    limit = limit_of(expectation, pair.base)

    def met(record: RunRecord, value: float) -> bool | None:
        if not record.stopped:
            return expectation.is_met(value, base)
        return False if limit is not None and limit.is_broken_for_good(record, record.horizon_s) else None

    if expectation.bound.of_base:  # base is the measure here: it has no verdict of its own
        return JudgedDraw(base, head, True, None if pair.base.stopped else met(pair.head, head))
    return JudgedDraw(base, head, met(pair.base, base), met(pair.head, head))


def _verdict(expectation: Expectation, draws: Sequence[JudgedDraw], base_failed: int, head_failed: int) -> Judgement:
    count = len(draws)
    is_open = any(one.head_met is None or (one.base_met is None and not one.head_met) for one in draws)
    if is_open:
        return Judgement.BASE_FAILS if base_failed * 2 > count else Judgement.UNDECIDED
    if expectation.bound.of_base and count > 1 and OPERATORS[expectation.op].direction:
        return Judgement.FAILS if _differs(expectation, draws) else Judgement.OK
    if (head_failed - base_failed) * 2 > count:
        return Judgement.FAILS
    if (base_failed - head_failed) * 2 > count:
        return Judgement.FIXED
    if head_failed * 2 > count and base_failed * 2 > count:
        return Judgement.BOTH
    if head_failed * 2 > count or base_failed * 2 > count:
        return Judgement.UNDECIDED  # both sides break it in about half of the draws: it is within the noise
    return Judgement.OK


def _differs(expectation: Expectation, draws: Sequence[JudgedDraw]) -> bool:
    """Return whether head is beyond the bound of base, by the mean of the pairs and its spread. A strict bound asks for
    a difference: it is broken unless the mean is within.
    """
    op = OPERATORS[expectation.op]
    beyond = [op.direction * (one.head - expectation.bound.at(one.base)) for one in draws]
    count = len(beyond)
    mean = sum(beyond) / count
    if op.is_strict:
        return mean >= 0
    spread = sqrt(sum((each - mean) ** 2 for each in beyond) / (count - 1) / count)
    factor = ONE_SIDED[count - 2] if count - 2 < len(ONE_SIDED) else MANY
    return mean - factor * spread > 0


# --- What was at stake


def stakes_of(expectation: Expectation, pairs: Sequence[Pair]) -> Stakes:
    """Return the stakes of an expectation: the greatest counts of either side in any draw."""
    found = [_stakes(expectation, record, pair.horizon_s) for pair in pairs for record in pair]
    return Stakes(
        max(each.jobs for each in found),
        max(each.waited for each in found),
        max(each.evictions for each in found),
        max(each.placed for each in found),
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
