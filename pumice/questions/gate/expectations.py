# SPDX-License-Identifier: Apache-2.0
"""An expectation compares a measure over the jobs in a scope with a bound, alone or against base.

A measure is `WHAT[.HOW][SCOPE]`, for example `wait.mean[queue=batch,pods>=8]`. A scope is a list of conditions, all of
which must hold: `name`, `namespace`, `queue`, `class` (globs), `pods` (a number), `label.KEY` (a glob). A bound is a
number, a duration, or `base` with a slack: `base`, `base + 10%`, `base + 30s`.
"""

from __future__ import annotations

import re
from math import isfinite, nan
from typing import Final

from msgspec import Struct

from pumice.config.durations import duration_s
from pumice.questions.adviser.reasons import WaitCode
from pumice.questions.gate.measures import MEASURES, AskedMeasure
from pumice.questions.gate.record import RunRecord
from pumice.questions.gate.scopes import OPERATORS, JobScope, MeasureError, scope_of

_MEASURE: Final = re.compile(r"([a-z_]+)(?:\.([^\[\]]+))?(?:\[(.*)\])?", re.DOTALL)
_BASE: Final = re.compile(r"base\s*(?:([+-])\s*(\S+))?")


class ExpectedBound(Struct, frozen=True):
    """Bounds a measure by a number, or, with `of_base`, by base's number × `factor` + `value`."""

    value: float
    of_base: bool = False
    factor: float = 1.0

    def at(self, base: float) -> float:
        """Return the number of the bound where base has this measure."""
        return base * self.factor + self.value if self.of_base else self.value


class Expectation(Struct, frozen=True):
    """States an expectation: `measure` and `op` as written, `bound` as read, `said` the bound as written."""

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
        """Return the expectation in one line."""
        return f"{self.measure} {self.op} {self.said}"

    def value(self, record: RunRecord, horizon_s: float) -> float:
        """Return the value of the measure in a run."""
        found = MEASURES[self.what].reckon(AskedMeasure(record, self.scope, self.how, horizon_s))
        return round(found, 4)

    def is_met(self, value: float, base: float) -> bool:
        """Return whether a value is as expected, beside the value of base."""
        return OPERATORS[self.op].holds(value, self.bound.at(base))


class RunLimit(Struct, frozen=True):
    """Holds a run to the bound of an expectation. `jobs`: the number of jobs in scope at the end, None: it is
    not known.
    """

    expectation: Expectation
    bound: float
    jobs: int | None = None

    def is_broken_for_good(self, record: RunRecord, at_s: float) -> bool:
        """Return whether a part of a run, up to `at_s`, breaks the limit however the run goes on."""
        expected = self.expectation
        found = MEASURES[expected.what].least
        asked = AskedMeasure(record, expected.scope, expected.how, at_s)
        least = None if found is None else found(asked, self.jobs)
        if least is None or not _has_upper_bound(expected):
            return False
        least = round(least, 4)
        return least > self.bound or (OPERATORS[expected.op].is_strict and least >= self.bound)


def _has_upper_bound(expectation: Expectation) -> bool:
    return OPERATORS[expectation.op].direction > 0 or expectation.op == "=="


def limit_of(expectation: Expectation, base: RunRecord) -> RunLimit | None:
    """Return the limit of a run of head, beside its run of base; None where no part of a run can break it for good."""
    if MEASURES[expectation.what].least is None or not _has_upper_bound(expectation):
        return None
    inside = expectation.scope.jobs(base)
    if expectation.bound.of_base and (base.stopped or (base.idle and any(job.started is None for job in inside))):
        return None  # base's own figure is open: it ended early, or a job waits until the later end of both sides
    jobs = len(inside) if base.foreseen and not base.stopped else None
    return RunLimit(expectation, expectation.bound.at(expectation.value(base, base.horizon_s)), jobs)


def expectation_of(name: str, measure: str, op: str, value: float | str) -> Expectation:
    """Read an expectation from its text. Raises MeasureError."""
    what, how, scope = _measure(measure)
    said = value if isinstance(value, str) else repr(float(value)).removesuffix(".0")
    return Expectation(name or f"{measure} {op} {said}", measure, what, how, scope, op, _bound(value), said)


def _measure(text: str) -> tuple[str, str, JobScope]:
    if ("[" in text) != text.rstrip().endswith("]"):
        raise MeasureError("measure", f"expected [CONDITION,…] at the end, with both brackets; was {text!r}")
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
    """Refuse a reason for which no job ever waits; a glob is accepted. Raises MeasureError."""
    codes = [each.value for each in WaitCode]
    if not any(letter in reason for letter in "*?[") and reason not in codes:
        raise MeasureError("measure", f"reason: unknown code {reason!r}; known: {', '.join(codes)}")


def _bound(said: float | str) -> ExpectedBound:
    if not isinstance(said, str):
        return ExpectedBound(_finite(float(said), said))
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
        found = float(said)
    except ValueError:
        seconds = duration_s(said.strip())
        found = nan if seconds is None else seconds
    return _finite(found, said)


def _finite(found: float, said: float | str) -> float:
    """Refuse what no measure can be held to: beside nan nothing ever holds, and below infinity everything does."""
    if not isfinite(found):
        expected = "expected a number, a duration such as 90s, or base, base + 10%, base + 30s"
        raise MeasureError("value", f"{expected}; was {said!r}")
    return found
