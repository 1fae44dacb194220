"""Rows of tables, each cell with the place where it stands, for errors that say so."""

from __future__ import annotations

import csv
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from pumice.cluster.api.names import subdomain_problem
from pumice.core.errors import QuantityError
from pumice.core.quantity import parse_quantity
from pumice.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LONGEST_S: Final = (2**63 - 1) // 10**9
NOTHING: Final = parse_quantity("0")
BEYOND: Final = "\0"
"""The cells of a row that stand behind those of the header."""


class TraceRow:
    """One row; `line` counts from 1. A cell that is absent is an empty text."""

    def __init__(self, row: Mapping[str, Any], source: str, line: int) -> None:
        self.row, self.source, self.line = row, source, line

    def text(self, column: str) -> str:
        """The cell of a column without blanks around it, "" where there is none."""
        value = self.row.get(column)
        return "" if value is None else str(value).strip()

    def seconds(self, column: str) -> float:
        """A time that a run can reach, Go's longest duration at most. InputError for anything else."""
        value = self.number(column)
        if value > LONGEST_S:
            raise self.error(column, f"expected at most {LONGEST_S} seconds, was {self.text(column)!r}")
        return value

    def number(self, column: str, default: float | None = None) -> float:
        """A number ≥ 0. InputError for anything else, and for nothing where there is no default."""
        text = self.text(column)
        if not text and default is not None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if value < 0 or not isfinite(value):
            raise self.error(column, f"expected a number ≥ 0, was {text!r}")
        return value

    def whole(self, column: str, default: int | None = None) -> int:
        """A whole number ≥ 0. InputError for anything else."""
        value = self.number(column, default)
        if value != int(value):
            raise self.error(column, f"expected a whole number, was {self.text(column)!r}")
        return int(value)

    def quantity(self, column: str) -> str:
        """One of Kubernetes' quantities, not negative; "" for nothing. InputError for anything else."""
        text = self.text(column)
        try:
            negative = bool(text) and parse_quantity(text).compare(NOTHING) < 0
        except QuantityError as problem:
            raise self.error(column, str(problem)) from problem
        if negative:
            raise self.error(column, f"expected a quantity ≥ 0, was {text!r}")
        return text

    def called(self, column: str) -> str:
        """A name as objects have them; "" for nothing. InputError for anything else."""
        text = self.text(column)
        problem = subdomain_problem(text) if text else None
        if problem is not None:
            raise self.error(column, f"{problem}; was {text!r}")
        return text

    def error(self, column: str, problem: str) -> InputError:
        """What is wrong with a cell."""
        return InputError(problem, source=self.source, line=self.line, path=column)


def rows_of_csv(text: str, source: str, columns: Sequence[str]) -> Iterator[TraceRow]:
    """The rows of a CSV with a header that has these columns, each with as many cells. InputError for any other."""
    reader: csv.DictReader[Any] = csv.DictReader(text.splitlines(), restkey=BEYOND)
    header = list(reader.fieldnames or ())
    expect(columns, header, source)
    for twice in [name for place, name in enumerate(header) if name and name in header[:place]]:
        raise InputError(f"the column {twice!r} stands there twice", source=source, line=1)
    for row in reader:
        cells = len(row) - (BEYOND in row) + len(row.pop(BEYOND, ())) - [*row.values()].count(None)
        if cells != len(header):
            raise InputError(f"expected {len(header)} cells, found {cells}", source=source, line=reader.line_num)
        yield TraceRow(row, source, reader.line_num)


def expect(columns: Sequence[str], found: Sequence[str], source: str) -> None:
    """InputError that names the columns that are not there."""
    missing = [column for column in columns if column not in found]
    if missing:
        raise InputError(f"expected the columns {', '.join(missing)}; found {', '.join(found)}", source=source, line=1)
