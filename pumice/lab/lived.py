# SPDX-License-Identifier: Apache-2.0
"""Results of a span of time: rows and measures, also as arrays and as an Arrow table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from pumice.cluster.kernel.fork import Fork
from pumice.errors import InputError
from pumice.executors import in_thread, waited
from pumice.questions.measures.jobs import JobRow
from pumice.questions.measures.measures import Measures, MeasuresSummary, measure
from pumice.questions.measures.tables import PointRow, QueueResourceRow, columns_of, points, queue_resources, to_arrow
from pumice.questions.whatif.saving import save
from pumice.questions.whatif.sources import journaled
from pumice.storage.sqlite import open_history

TableName = Literal["jobs", "queues", "series"]
ROWS: Final[dict[TableName, type[Any]]] = {"jobs": JobRow, "queues": QueueResourceRow, "series": PointRow}


@dataclass(frozen=True, slots=True)
class LivedRun:
    """Results of a span of time: a row for each job, and measures (see docs/reference/measures.md)."""

    jobs: list[JobRow]
    measures: Measures

    @property
    def summary(self) -> MeasuresSummary:
        """Return figures about the whole span."""
        return self.measures.summary

    def job(self, name: str) -> JobRow:
        """Return the row of a job, by `namespace/name` or by a name in `default`. KeyError when there was none."""
        full = name if "/" in name else f"default/{name}"
        return next((row for row in self.jobs if row.job == full), None) or _none_of(full)

    def rows(self, table: TableName = "jobs") -> list[Any]:
        """Return the rows that `pumice measures --table` writes. KeyError for an unknown table."""
        match table:
            case "jobs":
                return list(self.jobs)
            case "queues":
                return list(queue_resources(self.measures))
            case "series":
                return list(points(self.measures))
            case _:
                return _none_of(table)

    def arrays(self, table: TableName = "jobs") -> dict[str, npt.NDArray[Any]]:
        """Return column -> array of texts, int64 or float64, one for each row; missing values are not-a-number."""
        rows = self.rows(table)
        kinds: dict[type[Any], Any] = {str: np.str_, int: np.int64, float: np.float64}
        return {
            name: np.array([_number(getattr(row, name)) for row in rows], dtype=kinds[kind])
            for name, kind in columns_of(ROWS[table]).items()
        }

    def arrow(self, table: TableName = "jobs") -> Any:
        """Return a `pyarrow.Table`. RequestError when pyarrow is not installed (`pumice[tables]`)."""
        return to_arrow(self.rows(table), ROWS[table])


def _number(value: object) -> Any:
    return np.nan if value is None else value


def _none_of(name: str) -> NoReturn:
    raise KeyError(name)


# --- Journals in and out


def load_fork(file: Path, cycle: int | None) -> Fork:
    """Return the cluster of a journal, at its end or as that cycle found it. Raises ConfigError, DamagedError,
    OpenError."""
    return waited(journaled, file, cycle)


def save_run(fork: Fork, seconds: float, seed: int, file: Path) -> None:
    """Save so many seconds of a future as a journal. Raises InputError when the file exists."""
    if file.exists():
        raise InputError("there is a file already; name one that is to be made", source=str(file))
    in_thread(save, fork, seconds, seed, file)


def measures_of(file: str | Path) -> LivedRun:
    """Return the rows and measures of a recorded run. Raises DamagedError, OpenError."""
    return waited(_measured, Path(file))


async def _measured(file: Path) -> LivedRun:
    rows: list[JobRow] = []
    async with open_history(file) as journal:
        return LivedRun(rows, await measure(journal, rows.append))
