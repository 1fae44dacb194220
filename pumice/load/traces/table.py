"""A plain table of jobs: `csv:FILE` or `parquet:FILE`.

Columns `arrival` and `duration` in seconds, and any of `name`, `pods` (how many, 1), `gang` (how many must start
together, all), `cpu` (1), `memory` (a quantity, or bytes), `gpu`, `queue` (default), `user`, `priority` (a whole
number). Every further column that is called as a resource (`example.com/thing`) is asked for too. Amounts are of one
pod.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from pumice.cluster.api.admission.priority_classes import HIGHEST, LOWEST
from pumice.cluster.api.admission.rules import MOST_PODS
from pumice.config.input_file import demand_file
from pumice.errors import InputError
from pumice.extras import demand
from pumice.load.traces.jobs import GPU, TraceJob
from pumice.load.traces.rows import TraceRow, expect, rows_of_csv

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

NEEDED: Final = ("arrival", "duration")
COLUMNS: Final = (*NEEDED, "name", "pods", "gang", "cpu", "memory", "gpu", "queue", "user", "priority")
CLOSE: Final = 0.75
"""From so much likeness on a name is taken for a slip."""


def read_csv(text: str, source: str) -> Iterator[TraceJob]:
    """In the order of the file."""
    return _jobs(rows_of_csv(text, source, NEEDED))


def read_rows(rows: Iterable[Mapping[str, Any]], source: str) -> Iterator[TraceJob]:
    """In the order given. InputError names the row, from 1 on."""
    return _jobs(_given_rows(rows, source))


def _given_rows(rows: Iterable[Mapping[str, Any]], source: str) -> Iterator[TraceRow]:
    for number, row in enumerate(rows, 1):
        expect(NEEDED, [*row], source)
        yield TraceRow(row, source, number)


def read_parquet(path: Path) -> Iterator[TraceJob]:
    """In the order of the file. RequestError when pyarrow is not installed."""
    return _jobs(_parquet_rows(path))


def _parquet_rows(path: Path) -> Iterator[TraceRow]:
    parquet = demand("pyarrow.parquet", "tables", "Parquet files")
    try:
        if not path.is_dir():
            demand_file(path)
        table: Any = parquet.read_table(path)
    except FileNotFoundError as error:
        raise InputError("no such file", source=str(path)) from error
    except (OSError, ValueError) as error:  # what pyarrow raises is one of these
        why = str(error).partition("\n")[0].rpartition("': ")[2]
        raise InputError(f"no Parquet file that can be read: {why}", source=str(path)) from error
    expect(NEEDED, table.column_names, str(path))
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
    """Columns that nobody reads are no matter, but what is meant for one that is read would be missed."""
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
