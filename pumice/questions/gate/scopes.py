# SPDX-License-Identifier: Apache-2.0
"""A scope selects the jobs, and the places, of a measure."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from pumice.questions.gate.record import RecordedJob, RunRecord

if TYPE_CHECKING:
    from collections.abc import Mapping


class Operator(NamedTuple):
    """Compares a measure with a bound. `direction`: 1 for an upper bound, -1 for a lower one, 0 for neither."""

    holds: Callable[[float, float], bool]
    direction: int = 0
    is_strict: bool = False


OPERATORS: Final[Mapping[str, Operator]] = {
    "<=": Operator(operator.le, 1),
    ">=": Operator(operator.ge, -1),
    "<": Operator(operator.lt, 1, is_strict=True),
    ">": Operator(operator.gt, -1, is_strict=True),
    "==": Operator(operator.eq),
    "!=": Operator(operator.ne),
}
_CONDITION: Final = re.compile(r"([A-Za-z][^=!<>]*?)\s*(!=|>=|<=|=|>|<)\s*(.*)")


class MeasureError(ValueError):
    """Reports an expectation that cannot be read. `key`: the key with the mistake."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(problem)
        self.key = key


class ScopeCondition(NamedTuple):
    """Holds one condition of a scope."""

    key: str
    op: str
    value: str


NUMBERS: Final = ("pods",)
TEXTS: Final = ("name", "namespace", "queue", "class")
SHORT: Final = {"ns": "namespace", "prio": "class", "priority_class": "class"}
PLACES: Final = ("node", "task")
"""Conditions on binds."""
EQUALITY: Final = ("=", "!=")
"""Operators of conditions on texts."""
OPTIONS: Final = ("first", "then", "by", "reason")
"""Options of measures beside the scope."""


class JobScope(Struct, frozen=True):
    """Selects jobs by conditions that all hold; `places`: conditions on binds; `options`: those of the measure."""

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
        """Return the value of an option, "" without it."""
        return next((value for key, value in self.options if key == name), "")


def _holds(condition: ScopeCondition, job: RecordedJob) -> bool:
    key, op, wanted = condition
    if key in NUMBERS:
        return OPERATORS["==" if op == "=" else op].holds(float(job.pods), float(wanted))
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
            _demand_operator(key, op, ("=",))
            chosen.append((key, value))
        elif placing and (key in PLACES or key.startswith("node.")):
            _demand_operator(key, op, EQUALITY)
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
    else:
        _demand_operator(key, op, EQUALITY)
    return ScopeCondition(key, op, value)


def _demand_operator(key: str, op: str, known: Sequence[str]) -> None:
    if op not in known:
        raise MeasureError("measure", f"{key}: expected {' or '.join(known)}, was {op!r}")
