"""Rows of tables, each cell with the place where it stands, for errors that say so."""

from __future__ import annotations

import csv
from math import isfinite
from typing import TYPE_CHECKING, Any

from pumice.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class TraceRow:
    """One row; `line` counts from 1. A cell that is absent is an empty text."""

    def __init__(self, row: Mapping[str, Any], source: str, line: int) -> None:
        self.row, self.source, self.line = row, source, line

    def text(self, column: str) -> str:
        """As text."""
        value = self.row.get(column)
        return "" if value is None else str(value).strip()

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

    def error(self, column: str, problem: str) -> InputError:
        """What is wrong with a cell."""
        return InputError(problem, source=self.source, line=self.line, path=column)


def rows_of_csv(text: str, source: str, columns: Sequence[str]) -> Iterator[TraceRow]:
    """The rows of a CSV with a header that has these columns. InputError when it has not."""
    reader = csv.DictReader(text.splitlines())
    expect(columns, reader.fieldnames or (), source)
    for row in reader:
        yield TraceRow(row, source, reader.line_num)


def expect(columns: Sequence[str], found: Sequence[str], source: str) -> None:
    """InputError that names the columns that are not there."""
    missing = [column for column in columns if column not in found]
    if missing:
        raise InputError(f"expected the columns {', '.join(missing)}; found {', '.join(found)}", source=source, line=1)
