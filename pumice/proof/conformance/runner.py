"""Running many cases: cut into slices, spread over processes, gathered in order.

Every case is a function of its file, so the verdicts do not depend on how many processes there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pumice.executors import Executors, as_ended
from pumice.proof.conformance.case import SuiteFile, read_cases, read_raw
from pumice.proof.conformance.inheritance import ActionArguments
from pumice.proof.conformance.judge import Verdict, judge
from pumice.proof.conformance.resources import run_resource_cases
from pumice.proof.conformance.shape import name_of

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
    kept: ActionArguments = field(default_factory=dict[str, "dict[str, Any]"])
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
    """Run every case whose "suite: name" contains `wanted`; `progress` is told how many cases a slice held.

    `executors`: who runs them, None: this process. `kept`: see `pumice.proof.conformance.inheritance`.
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
    """Slices of a file, in order. The resource suite stays whole."""
    step = file.cases
    if not file.is_resources and file.cases:
        step = max(1, SLICE_BYTES * file.cases // max(1, file.bytes))
    for first in range(0, file.cases, max(1, step)):
        yield Slice(file, first, min(file.cases, first + step), wanted)


def run_slice(piece: Slice) -> list[Verdict]:
    """The verdicts of one slice, in order."""
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
