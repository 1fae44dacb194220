# SPDX-License-Identifier: Apache-2.0
"""A plain table of jobs, `csv:FILE` or `parquet:FILE`, and rows that know their place.

Columns `arrival` and `duration` in seconds, and any of `name`, `pods` (how many, 1), `gang` (how many must start
together, all), `cpu` (1), `memory` (a quantity, or bytes), `gpu`, `queue` (default), `user`, `priority` (a whole
number). Every further column that is called as a resource (`example.com/thing`) is asked for too. Amounts are of one
pod.
"""

from __future__ import annotations

import csv
from difflib import get_close_matches
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from pumice.cluster.api.admission.priority_classes import HIGHEST, LOWEST
from pumice.cluster.api.admission.rules import MOST_PODS
from pumice.cluster.api.names import subdomain_problem
from pumice.config.input_file import demand_file
from pumice.core.errors import QuantityError
from pumice.core.quantity import parse_quantity
from pumice.errors import InputError, demand
from pumice.load.traces.jobs import GPU, TraceJob

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

# --- Rows

LONGEST_S: Final = (2**63 - 1) // 10**9
NOTHING: Final = parse_quantity("0")
BEYOND: Final = "\0"
"""The cells of a row that stand behind those of the header."""


class TraceRow:
    """One row; `line` counts from 1. An absent cell is an empty text."""

    def __init__(self, row: Mapping[str, Any], source: str, line: int) -> None:
        self.row, self.source, self.line = row, source, line

    def text(self, column: str) -> str:
        """Return the cell of a column without blanks around it, "" without one."""
        value = self.row.get(column)
        return "" if value is None else str(value).strip()

    def seconds(self, column: str) -> float:
        """Return a time that a run can reach, Go's longest duration at most. InputError for anything else."""
        value = self.number(column)
        if value > LONGEST_S:
            raise self.error(column, f"expected at most {LONGEST_S} seconds, was {self.text(column)!r}")
        return value

    def number(self, column: str, default: float | None = None) -> float:
        """Return a number ≥ 0. InputError for anything else, and for an empty cell without a default."""
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
        """Return a whole number ≥ 0. InputError for anything else."""
        value = self.number(column, default)
        if value != int(value):
            raise self.error(column, f"expected a whole number, was {self.text(column)!r}")
        return int(value)

    def quantity(self, column: str) -> str:
        """Return one of Kubernetes' quantities, not negative; "" for an empty cell. InputError for another text."""
        text = self.text(column)
        try:
            negative = bool(text) and parse_quantity(text).compare(NOTHING) < 0
        except QuantityError as problem:
            raise self.error(column, str(problem)) from problem
        if negative:
            raise self.error(column, f"expected a quantity ≥ 0, was {text!r}")
        return text

    def called(self, column: str) -> str:
        """Return a valid name of objects; "" for an empty cell. InputError for another text."""
        text = self.text(column)
        problem = subdomain_problem(text) if text else None
        if problem is not None:
            raise self.error(column, f"{problem}; was {text!r}")
        return text

    def error(self, column: str, problem: str) -> InputError:
        """Return the error about a cell."""
        return InputError(problem, source=self.source, line=self.line, path=column)


def rows_of_csv(text: str, source: str, columns: Sequence[str]) -> Iterator[TraceRow]:
    """Yield the rows of a CSV with a header that has these columns, each with as many cells. InputError for any
    other."""
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
    """Check that the columns exist. InputError names the missing ones."""
    missing = [column for column in columns if column not in found]
    if missing:
        raise InputError(f"expected the columns {', '.join(missing)}; found {', '.join(found)}", source=source, line=1)


PARQUET: Final = ".parquet"
NEEDED: Final = ("arrival", "duration")
COLUMNS: Final = (*NEEDED, "name", "pods", "gang", "cpu", "memory", "gpu", "queue", "user", "priority")
CLOSE: Final = 0.75
"""From so much likeness on a name is taken for a slip."""


def read_csv(text: str, source: str) -> Iterator[TraceJob]:
    """Read the rows in the order of the file."""
    return _jobs(rows_of_csv(text, source, NEEDED))


def read_rows(rows: Iterable[Mapping[str, Any]], source: str) -> Iterator[TraceJob]:
    """Read the rows in the order given. InputError names the row, from 1 on."""
    return _jobs(_given_rows(rows, source))


def _given_rows(rows: Iterable[Mapping[str, Any]], source: str) -> Iterator[TraceRow]:
    for number, row in enumerate(rows, 1):
        expect(NEEDED, [*row], source)
        yield TraceRow(row, source, number)


def read_parquet(path: Path) -> Iterator[TraceJob]:
    """Read the rows in the order of the file. RequestError when pyarrow is not installed."""
    return _jobs(parquet_rows(path, NEEDED))


def parquet_rows(path: Path, needed: Sequence[str]) -> Iterator[TraceRow]:
    """Yield the rows of a file, or of a folder of files, that has these columns. RequestError when pyarrow is not
    installed, InputError for a file that is none.
    """
    parquet = demand("pyarrow.parquet", "tables", "Parquet files")
    try:
        if not path.is_dir():
            demand_file(path)
        table: Any = parquet.read_table(path)
    except FileNotFoundError as error:
        raise InputError("does not exist", source=str(path)) from error
    except (OSError, ValueError) as error:  # what pyarrow raises is one of these
        why = str(error).partition("\n")[0].rpartition("': ")[2]
        raise InputError(f"no Parquet file that can be read: {why}", source=str(path)) from error
    expect(needed, table.column_names, str(path))
    for number, row in enumerate(table.to_pylist(), 1):
        yield TraceRow(row, str(path), number)


def _jobs(rows: Iterable[TraceRow]) -> Iterator[TraceJob]:
    lines: dict[str, int] = {}
    for number, cells in enumerate(rows):
        _look_for_slips(cells)
        job = _job(cells, number)
        if job.name in lines:
            raise cells.error("name", f"{job.name!r} stands in line {lines[job.name]} already")
        lines[job.name] = cells.line
        yield job


def _look_for_slips(cells: TraceRow) -> None:
    """Warn of unknown columns with a similar name: unknown ones do no harm, but a misspelt one would be missed."""
    for name in cells.row:
        near = None if name in COLUMNS or "/" in name else get_close_matches(name.lower(), COLUMNS, 1, CLOSE)
        if near:
            raise InputError(f"unknown column {name!r}, did you mean {near[0]!r}?", source=cells.source, line=1)


def _job(cells: TraceRow, number: int) -> TraceJob:
    pods = cells.whole("pods", 1)
    gang = cells.whole("gang") if cells.text("gang") else None
    if pods < 1:
        raise cells.error("pods", "expected at least 1")
    if pods > MOST_PODS:
        raise cells.error("pods", f"expected at most {MOST_PODS}, was {pods}")
    if gang is not None and gang > pods:
        raise cells.error("gang", f"expected at most the {pods} pods, was {gang}")
    return TraceJob(
        name=cells.called("name") or f"job-{number}",
        arrival_s=cells.seconds("arrival"),
        duration_s=cells.seconds("duration"),
        pods=((pods, _amounts(cells)),),
        queue=cells.called("queue") or "default",
        user=cells.text("user"),
        gang=gang,
        priority=_priority(cells),
    )


def _amounts(cells: TraceRow) -> dict[str, str]:
    found = {"cpu": cells.quantity("cpu") or "1"}
    if memory := cells.quantity("memory"):
        found["memory"] = memory
    if cards := cells.whole("gpu", 0):
        found[GPU] = str(cards)
    found |= {name: cells.quantity(name) for name in cells.row if "/" in name and cells.text(name)}
    return found


def _priority(cells: TraceRow) -> int | None:
    text = cells.text("priority")
    try:
        value = int(text) if text else None
    except ValueError:
        raise cells.error("priority", f"expected a whole number, was {text!r}") from None
    if value is not None and not LOWEST <= value <= HIGHEST:
        raise cells.error("priority", f"expected {LOWEST} to {HIGHEST}, was {value}")
    return value
