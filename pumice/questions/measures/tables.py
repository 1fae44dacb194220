# SPDX-License-Identifier: Apache-2.0
"""Tables of measures, for files: flat rows of one kind as CSV or Parquet, written as they come.

pyarrow writes Parquet and is an extra (`pumice[tables]`): who wants CSV or JSON needs nothing more.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO, get_type_hints

from pumice.errors import demand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pumice.questions.measures.measures import Measures

# --- Rows


@dataclass(frozen=True, slots=True)
class QueueResourceRow:
    """One resource of one queue; the columns of `QueueRow`, and requested, held and deserved amount × seconds."""

    queue: str
    weight: int
    jobs: int
    pods: int
    ended: int
    unstarted: int
    evictions: int
    killed: int
    restarts: int
    lost_cpu_s: float
    mean_wait_s: float | None
    median_wait_s: float | None
    p95_wait_s: float | None
    mean_bounded_slowdown: float | None
    resource: str
    requested_s: float
    held_s: float
    deserved_s: float
    share: float


@dataclass(frozen=True, slots=True)
class PointRow:
    """One value of one series: the mean over the span that begins `start_s` seconds after the beginning."""

    what: str
    resource: str
    queue: str
    start_s: float
    value: float


def queue_resources(found: Measures) -> Iterator[QueueResourceRow]:
    """Yield a row for each queue and resource that its jobs requested."""
    for row in found.queues:
        for resource, of in row.resources.items():
            yield QueueResourceRow(
                row.queue,
                row.weight,
                row.jobs,
                row.pods,
                row.ended,
                row.unstarted,
                row.evictions,
                row.killed,
                row.restarts,
                row.lost_cpu_s,
                row.mean_wait_s,
                row.median_wait_s,
                row.p95_wait_s,
                row.mean_bounded_slowdown,
                resource,
                of["requested_s"],
                of["held_s"],
                of["deserved_s"],
                of["share"],
            )


def points(found: Measures) -> Iterator[PointRow]:
    """Yield a row for each stretch of each series."""
    for series in found.series:
        for start, value in zip(found.starts_s, series.values, strict=True):
            yield PointRow(series.what, series.resource, series.queue, start, value)


CHUNK: Final = 10_000
"""Rows of one group of a Parquet file: what is held in memory."""


class TableWriter(Protocol):
    """Takes rows one by one."""

    def write(self, row: object) -> None:
        """Write one more row."""

    def close(self) -> None:
        """Close after the last row."""


def columns_of(row_type: type[Any]) -> dict[str, type[Any]]:
    """Return columns of a dataclass of plain fields: name -> str, int or float. Fields that may be None are floats."""
    hints = get_type_hints(row_type)
    return {one.name: hints[one.name] if hints[one.name] in (str, int, float) else float for one in fields(row_type)}


class CsvWriter:
    """Writes CSV by RFC 4180, a header line first; None is an empty cell."""

    def __init__(self, file: TextIO, row_type: type[Any]) -> None:
        self._names = [*columns_of(row_type)]
        self._csv = csv.writer(file, lineterminator="\n")
        self._csv.writerow(self._names)

    def write(self, row: object) -> None:
        """Write one more row."""
        self._csv.writerow([_cell(getattr(row, name)) for name in self._names])

    def close(self) -> None:
        """Do nothing: all rows are written."""


class ParquetWriter:
    """Writes one Parquet file, a row group for every `CHUNK` rows."""

    def __init__(self, path: Path, row_type: type[Any]) -> None:
        arrow = _pyarrow()
        kinds = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
        self._schema = arrow.schema([(name, kinds[kind]) for name, kind in columns_of(row_type).items()])
        self._arrow, self._rows = arrow, list[Any]()
        self._file = arrow.parquet.ParquetWriter(str(path), self._schema)

    def write(self, row: object) -> None:
        """Write one more row."""
        self._rows.append(row)
        if len(self._rows) >= CHUNK:
            self._flush()

    def _flush(self) -> None:
        columns = [[getattr(row, name) for row in self._rows] for name in self._schema.names]
        self._file.write_table(self._arrow.table(columns, schema=self._schema))
        self._rows.clear()

    def close(self) -> None:
        """Write the remaining rows, and the end of the file."""
        if self._rows:
            self._flush()
        self._file.close()


def to_arrow(rows: Sequence[Any], row_type: type[Any]) -> Any:
    """Return a `pyarrow.Table` of rows. Raises RequestError when pyarrow is not installed."""
    arrow = _pyarrow()
    kinds = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
    schema = arrow.schema([(name, kinds[kind]) for name, kind in columns_of(row_type).items()])
    return arrow.table([[getattr(row, name) for row in rows] for name in schema.names], schema=schema)


def _cell(value: object) -> Any:
    return "" if value is None else f"{value:.12g}" if isinstance(value, float) else value


def _pyarrow() -> Any:
    demand("pyarrow.parquet", "tables", "Tables for Arrow and Parquet")
    return demand("pyarrow", "tables", "Tables for Arrow and Parquet")
