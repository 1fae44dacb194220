"""Whether a run was flat: its second half against its first, after a warm-up, by the medians of samples."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

Row = Mapping[str, float]

MOST_GROWTH: Final = 0.05
FEWEST: Final = 2
"""Samples that each half must have."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A figure that must not grow. `slack`: so much in its own unit it may, however little it was."""

    name: str
    slack: float = 0.0


JUDGED: Final = (
    Judged("rss_mb", 2.0),
    Judged("uss_mb", 2.0),
    Judged("journal_mb", 1.0),
    Judged("wal_mb", 1.0),
    Judged("descriptors", 2.0),
    Judged("threads", 1.0),
    Judged("objects", 50.0),
    Judged("metric_lines", 5.0),
    Judged("log_kb", 1.0),
    *(
        Judged(f"{verb}_{part}_ms", slack)
        for verb in ("post", "delete", "patch", "get", "list", "lag")
        for part, slack in (("p50", 2.0), ("p99", 20.0))
    ),
    Judged("cpu_ms", 0.05),
)


@dataclass(frozen=True, slots=True)
class HalvesVerdict:
    """One figure: its medians in both halves, and whether it stayed."""

    name: str
    first: float
    second: float
    flat: bool

    @property
    def growth(self) -> float:
        """0.05: a twentieth more."""
        return (self.second - self.first) / self.first if self.first else 0.0


def compared(rows: Sequence[Row], warm_s: float, judged: Iterable[Judged] = JUDGED) -> list[HalvesVerdict]:
    """The verdict on each figure that both halves have. `t_s` of a row is when it was sampled; what was sampled up to
    `warm_s` counts for nothing. ValueError for a run too short to be judged.
    """
    counted = [row for row in rows if row["t_s"] > warm_s]
    if len(counted) < 2 * FEWEST:
        raise ValueError(f"{len(counted)} samples after the warm-up are too few to compare")
    middle = (warm_s + counted[-1]["t_s"]) / 2
    halves = [row for row in counted if row["t_s"] <= middle], [row for row in counted if row["t_s"] > middle]
    found: list[HalvesVerdict] = []
    for each in judged:
        first, second = ([row[each.name] for row in half if each.name in row] for half in halves)
        if first and second:
            found.append(_verdict(each, statistics.median(first), statistics.median(second)))
    return found


def _verdict(judged: Judged, first: float, second: float) -> HalvesVerdict:
    allowed = max(first * MOST_GROWTH, judged.slack)
    return HalvesVerdict(judged.name, first, second, flat=second - first <= allowed)


def table(verdicts: Iterable[HalvesVerdict]) -> str:
    """The verdicts as text, a line each."""
    lines = [f"{'figure':<16}{'first half':>12}{'second half':>13}{'growth':>9}"]
    for each in verdicts:
        mark = "" if each.flat else "  GROWS"
        lines.append(f"{each.name:<16}{each.first:>12.2f}{each.second:>13.2f}{each.growth:>+9.1%}{mark}")
    return "\n".join(lines)


def percentiles(values: Sequence[float]) -> tuple[float, float]:
    """Median and 99th percentile (nearest rank)."""
    ordered = sorted(values)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


class SampleTable:
    """Rows that are on disk as soon as they are there, as CSV; the first row says which columns there are."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self._path = path
        self._columns = list(columns)
        self.rows: list[Row] = []
        with path.open("w", newline="") as file:
            csv.writer(file).writerow(self._columns)

    def add(self, row: Row) -> None:
        """A row more; what a row does not have stays empty."""
        self.rows.append(row)
        with self._path.open("a", newline="") as file:
            csv.writer(file).writerow([_shown(row.get(name)) for name in self._columns])


def read_table(path: Path) -> list[Row]:
    """The rows of a file that `SampleTable` wrote."""
    with path.open(newline="") as file:
        return [{name: float(text) for name, text in row.items() if text} for row in csv.DictReader(file)]


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}" if abs(value) < 1e5 else f"{value:.0f}"
