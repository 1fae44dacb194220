"""A plain table of jobs: `csv:FILE` or `parquet:FILE`.

Columns `arrival` and `duration` in seconds, and any of `name`, `pods` (how many, 1), `gang` (how many must start
together, all), `cpu` (1), `memory` (a quantity, or bytes), `gpu`, `queue` (default), `user`, `priority` (a whole
number). Every further column that is called as a resource (`example.com/thing`) is asked for too. Amounts are of one
pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.extras import demand
from pumice.load.traces.jobs import GPU, TraceJob
from pumice.load.traces.rows import TraceRow, expect, rows_of_csv

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

NEEDED: Final = ("arrival", "duration")


def read_csv(text: str, source: str) -> Iterator[TraceJob]:
    """In the order of the file."""
    return _jobs(rows_of_csv(text, source, NEEDED))


def read_rows(rows: Iterable[Mapping[str, Any]], source: str) -> Iterator[TraceJob]:
    """In the order given. InputError names the row, from 1 on."""
    for number, row in enumerate(rows):
        expect(NEEDED, [*row], source)
        yield _job(TraceRow(row, source, number + 1), number)


def read_parquet(path: Path) -> Iterator[TraceJob]:
    """In the order of the file. RequestError when pyarrow is not installed."""
    return _jobs(_parquet_rows(path))


def _parquet_rows(path: Path) -> Iterator[TraceRow]:
    parquet = demand("pyarrow.parquet", "tables", "Parquet files")
    table: Any = parquet.read_table(path)
    expect(NEEDED, table.column_names, str(path))
    for number, row in enumerate(table.to_pylist(), 1):
        yield TraceRow(row, str(path), number)


def _jobs(rows: Iterable[TraceRow]) -> Iterator[TraceJob]:
    for number, cells in enumerate(rows):
        yield _job(cells, number)


def _job(cells: TraceRow, number: int) -> TraceJob:
    pods = int(cells.number("pods", 1))
    if pods < 1:
        raise cells.error("pods", "expected at least 1")
    return TraceJob(
        name=cells.text("name") or f"job-{number}",
        arrival_s=cells.number("arrival"),
        duration_s=cells.number("duration"),
        pods=((pods, _amounts(cells)),),
        queue=cells.text("queue") or "default",
        user=cells.text("user"),
        gang=int(cells.number("gang")) if cells.text("gang") else None,
        priority=_priority(cells),
    )


def _amounts(cells: TraceRow) -> dict[str, str]:
    found = {"cpu": cells.text("cpu") or "1"}
    if memory := cells.text("memory"):
        found["memory"] = memory
    if cells.text("gpu") and cells.number("gpu"):
        found[GPU] = f"{cells.number('gpu'):g}"
    found |= {name: cells.text(name) for name in cells.row if name and "/" in name and cells.text(name)}
    return found


def _priority(cells: TraceRow) -> int | None:
    text = cells.text("priority")
    try:
        return int(text) if text else None
    except ValueError:
        raise cells.error("priority", f"expected a whole number, was {text!r}") from None
