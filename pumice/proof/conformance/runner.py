# SPDX-License-Identifier: Apache-2.0
"""The runner of many cases: cut into slices, spread over processes, gathered in order and scored.

Every case is a function of its file, so the verdicts do not depend on how many processes there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, cast

import msgspec

from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import Object, is_list, is_mapping
from pumice.core.quantity import parse_quantity
from pumice.core.resources import INFINITY, LARGEST, ZERO, Resource, exceeded_part, intersection
from pumice.executors import Executors, as_ended
from pumice.proof.conformance.case import ActionArguments, SuiteFile, name_of, read_cases, read_raw
from pumice.proof.conformance.compare import Group
from pumice.proof.conformance.judge import Verdict, judge
from pumice.results import Result

# --- Scores


@dataclass(slots=True)
class CaseTally:
    """Number of expectations counted, and number that held."""

    total: int = 0
    passed: int = 0

    def count(self, passed: bool) -> None:
        self.total += 1
        self.passed += passed


class FailedCase(msgspec.Struct, frozen=True):
    """A case that failed, and its differences."""

    suite: str
    case: str
    diff: str


class ConformanceResult(Result, kw_only=True, tag="conformance/1"):
    """Number of cases, and number that pass: on decisions, on numbers, on words, by suite; and the failures."""

    total: int
    passed: int
    failed: int
    decisions: CaseTally
    numbers: CaseTally
    words: CaseTally
    by_suite: dict[str, CaseTally]
    failures: list[FailedCase]


@dataclass(slots=True)
class Score:
    """The score of a run, with the failures in the order of suites and cases."""

    whole: CaseTally = field(default_factory=CaseTally)
    by_group: dict[Group, CaseTally] = field(
        default_factory=lambda: {"decisions": CaseTally(), "numbers": CaseTally(), "words": CaseTally()}
    )
    by_suite: dict[str, CaseTally] = field(default_factory=dict[str, CaseTally])
    failures: list[Verdict] = field(default_factory=list[Verdict])

    def add(self, verdict: Verdict) -> None:
        """Count one verdict."""
        self.whole.count(verdict.passed)
        self.by_suite.setdefault(verdict.suite, CaseTally()).count(verdict.passed)
        for group in verdict.checked:
            self.by_group[group].count(verdict.passed_on(group))
        if not verdict.passed:
            self.failures.append(verdict)

    def result(self) -> ConformanceResult:
        """Return it as it is printed."""
        return ConformanceResult(
            total=self.whole.total,
            passed=self.whole.passed,
            failed=self.whole.total - self.whole.passed,
            **self.by_group,
            by_suite=dict(sorted(self.by_suite.items())),
            failures=[FailedCase(verdict.suite, verdict.case, verdict.diff) for verdict in self.failures],
        )


def score_of(verdicts: Iterable[Verdict]) -> Score:
    """Return the score of all verdicts, sorted by suite (cases keep their order within one)."""
    score = Score()
    for verdict in sorted(verdicts, key=lambda one: one.suite):
        score.add(verdict)
    return score


# --- The resource suite
# Unlike the other suites there is nothing to schedule: a row gives operands and what Volcano's own methods made of
# them.

Json = Any
Operation = Callable[[Resource, Resource, Resource], Json]


class CaseResult(NamedTuple):
    """One row: its name, whether everything in it held, and its failures (empty when all held)."""

    name: str
    passed: bool
    diff: str


def run_resource_cases(data: Object) -> list[CaseResult]:
    """Return all rows of ``resources.json``: the quantities, then the operations."""
    results = [_quantity_case(row) for row in data.get("quantities") or ()]
    results += [_operation_case(index, row) for index, row in enumerate(data.get("operations") or ())]
    return results


def _quantity_case(row: Object) -> CaseResult:
    text: str = row["text"]
    wanted = {key: value for key, value in row.items() if key != "text"}
    return _result(f"quantity {text!r}", wanted, {key: _quantity_answer(text, key) for key in wanted})


def _quantity_answer(text: str, key: str) -> Json:
    try:
        quantity = parse_quantity(text)
    except QuantityError:
        return key == "error"
    if key.startswith("resource:"):
        return to_json(Resource.from_list({key.removeprefix("resource:"): text}))
    answers: dict[str, Json] = {
        "canonical": quantity.canonical(),
        "milli": quantity.milli_value(),
        "value": quantity.value(),
    }
    return answers.get(key)


def _operation_case(index: int, row: Object) -> CaseResult:
    operands = [from_json(row[key]) for key in ("a", "b", "req")]
    wanted = {key: value for key, value in row.items() if key not in ("a", "b", "req")}
    got: dict[str, Json] = {}
    for key in wanted:
        operation = OPERATIONS.get(key)
        left, right, req = (operand.clone() for operand in operands)
        got[key] = "not an operation of this release" if operation is None else _plain(operation(left, right, req))
    return _result(f"operations {index}", wanted, got)


def _result(name: str, wanted: dict[str, Json], got: dict[str, Json]) -> CaseResult:
    wrong = [
        f"{key}: expected {value!r}, was {got[key]!r}" for key, value in wanted.items() if not _same(value, got[key])
    ]
    return CaseResult(name, not wrong, "; ".join(wrong))


def _same(wanted: Json, got: Json) -> bool:
    """Return whether two values are equal, where numbers are float64 and true is not 1."""
    if isinstance(wanted, bool) or isinstance(got, bool):
        return wanted is got
    if isinstance(wanted, float) or isinstance(got, float):
        return isinstance(got, int | float) and isinstance(wanted, int | float) and float(wanted) == float(got)
    if is_list(wanted) and is_list(got):
        return len(wanted) == len(got) and all(map(_same, wanted, got))
    if is_mapping(wanted) and is_mapping(got):
        return wanted.keys() == got.keys() and all(_same(value, got[key]) for key, value in wanted.items())
    return bool(wanted == got)


def from_json(row: Object) -> Resource:
    """Return a resource of the case file: no ``scalars`` key is Go's nil map, ``"max"`` the largest float."""
    scalars: dict[str, Json] | None = row.get("scalars")
    return Resource(
        _number(row["cpu"]),
        _number(row["memory"]),
        None if scalars is None else {name: _number(amount) for name, amount in scalars.items()},
    )


def to_json(resource: Resource) -> dict[str, Json]:
    """Return the reverse of ``from_json``."""
    row: dict[str, Json] = {"cpu": _shown(resource.milli_cpu), "memory": _shown(resource.memory)}
    if resource.scalars is not None:
        row["scalars"] = {name: _shown(amount) for name, amount in resource.scalars.items()}
    return row


def _number(value: Json) -> float:
    return LARGEST if value == "max" else float(value)


def _shown(amount: float) -> float | str:
    return "max" if amount == LARGEST else amount


def _plain(answer: Json) -> Json:
    """Return an answer as the case file writes it."""
    if isinstance(answer, Resource):
        return to_json(answer)
    if isinstance(answer, tuple):
        return [_plain(part) for part in cast("tuple[object, ...]", answer)]
    if is_list(answer):
        return sorted(answer)
    return answer


def _max(left: Resource, right: Resource) -> Resource:
    left.set_max_resource(right)
    return left


OPERATIONS: Final[dict[str, Operation]] = {
    "add": lambda a, b, req: a.add(b),
    "subWithoutAssert": lambda a, b, req: a.sub_without_assert(b),
    "multi1.2": lambda a, b, req: a.multi(1.2),
    "fitDelta": lambda a, b, req: a.fit_delta(b),
    "setMaxResource": lambda a, b, req: _max(a, b),
    "minDimensionResource.zero": lambda a, b, req: a.min_dimension_resource(b, ZERO),
    "minDimensionResource.infinity": lambda a, b, req: a.min_dimension_resource(b, INFINITY),
    "diff.zero": lambda a, b, req: a.diff(b, ZERO),
    "diff.infinity": lambda a, b, req: a.diff(b, INFINITY),
    "exceededPart": lambda a, b, req: exceeded_part(a, b),
    "intersection": lambda a, b, req: intersection(a, b),
    "isEmpty": lambda a, b, req: a.is_empty(),
    "resourceNames": lambda a, b, req: a.resource_names(),
    "string": lambda a, b, req: a.string(),
    "equal.zero": lambda a, b, req: a.equal(b, ZERO),
    "equal.infinity": lambda a, b, req: a.equal(b, INFINITY),
    "less.zero": lambda a, b, req: a.less(b, ZERO),
    "less.infinity": lambda a, b, req: a.less(b, INFINITY),
    "lessEqual.zero": lambda a, b, req: a.less_equal(b, ZERO),
    "lessEqual.infinity": lambda a, b, req: a.less_equal(b, INFINITY),
    "lessEqualWithResourcesName.zero": lambda a, b, req: a.less_equal_with_resources_name(b, ZERO),
    "lessEqualWithResourcesName.infinity": lambda a, b, req: a.less_equal_with_resources_name(b, INFINITY),
    "lessEqualWithDimensionAndResourcesName": lambda a, b, req: a.less_equal_with_dimension_and_resources_name(b, req),
    "lessPartly.zero": lambda a, b, req: a.less_partly(b, ZERO),
    "lessPartly.infinity": lambda a, b, req: a.less_partly(b, INFINITY),
    "lessEqualPartly.zero": lambda a, b, req: a.less_equal_partly(b, ZERO),
    "lessEqualPartly.infinity": lambda a, b, req: a.less_equal_partly(b, INFINITY),
    "lessEqualPartlyWithDimension": lambda a, b, req: a.less_equal_partly_with_dimension(b, req),
    "lessEqualPartlyWithDimensionZeroFiltered": lambda a, b, req: a.less_equal_partly_with_dimension_zero_filtered(
        b, req
    ),
    "greaterPartly.zero": lambda a, b, req: a.greater_partly(b, ZERO),
    "greaterPartly.infinity": lambda a, b, req: a.greater_partly(b, INFINITY),
    "greaterPartlyWithDimension": lambda a, b, req: a.greater_partly_with_dimension(b, req),
    "greaterPartlyWithRelevantDimensions": lambda a, b, req: a.greater_partly_with_relevant_dimensions(b, req),
}
"""Meaning of the file's operation names; ``a``, ``b`` and ``req`` are copies and may be changed."""


SLICE_BYTES: Final = 150_000
"""A slice is about this much of a case file: small enough to balance two processes, large enough not to be felt."""

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Slice:
    """Cases first..last (exclusive) of one file, and the substring their "suite: name" must contain."""

    file: SuiteFile
    first: int
    last: int
    wanted: str
    kept: ActionArguments = field(default_factory=dict[str, "Object"])
    lenient: bool = False

    @property
    def cost(self) -> float:
        return self.file.bytes * (self.last - self.first) / max(1, self.file.cases)


def run_suites(
    files: Sequence[SuiteFile],
    *,
    wanted: str = "",
    executors: Executors | None = None,
    progress: Progress | None = None,
    kept: ActionArguments | None = None,
    lenient: bool = False,
) -> list[Verdict]:
    """Run every case whose "suite: name" contains `wanted`; `progress` receives the number of cases in a slice.

    `executors`: who runs them, None: this process. `kept`: see `pumice.proof.conformance.case`.
    `lenient`: names in the cases' configurations that do not exist are left out.
    """
    slices = [replace(piece, kept=kept or {}, lenient=lenient) for file in files for piece in cut(file, wanted)]
    verdicts: list[list[Verdict]] = [[] for _ in slices]
    for index, found in _run_all(slices, executors):
        verdicts[index] = found
        if progress is not None:
            progress(slices[index].last - slices[index].first)
    return [verdict for group in verdicts for verdict in group]


def cut(file: SuiteFile, wanted: str) -> Iterator[Slice]:
    """Return slices of a file, in order. The resource suite stays whole."""
    step = file.cases
    if not file.is_resources and file.cases:
        step = max(1, SLICE_BYTES * file.cases // max(1, file.bytes))
    for first in range(0, file.cases, max(1, step)):
        yield Slice(file, first, min(file.cases, first + step), wanted)


def run_slice(piece: Slice) -> list[Verdict]:
    """Return the verdicts of one slice, in order."""
    suite = piece.file.suite
    if piece.file.is_resources:
        verdicts = run_resource_cases(read_raw(piece.file.path))
        return [
            Verdict(suite, one.name, frozenset(), reason="" if one.passed else one.diff)
            for one in verdicts
            if piece.wanted in f"{suite}: {one.name}"
        ]
    cases = enumerate(read_cases(piece.file.path)[piece.first : piece.last], piece.first + 1)
    return [
        judge(suite, case, piece.kept, number, lenient=piece.lenient)
        for number, case in cases
        if piece.wanted in f"{suite}: {name_of(case, number)}"
    ]


def _run_all(slices: Sequence[Slice], executors: Executors | None) -> Iterator[tuple[int, list[Verdict]]]:
    if executors is None or len(slices) <= 1:
        for index, piece in enumerate(slices):
            yield index, run_slice(piece)
        return
    dearest_first = sorted(range(len(slices)), key=lambda index: -slices[index].cost)
    with executors() as executor:
        for index, future in as_ended(run_slice, {index: (slices[index],) for index in dearest_first}, executor):
            yield index, future.result()
