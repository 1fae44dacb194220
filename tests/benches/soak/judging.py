"""Whether a run was flat: whether its figures still rise in the second half, after a warm-up."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tests.benches.soak.trend import trend

Row = Mapping[str, float]

MOST_GROWTH: Final = 0.05
"""Of a figure, in the second half: so much may be."""
FEWEST: Final = 2
"""Samples that each half must have."""
HOUR_S: Final = 3600.0


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


Word = Literal["flat", "GROWS", "unclear"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One figure: its medians in both halves, and what an hour of the second adds: the estimate, and its bounds."""

    name: str
    first: float
    second: float
    low: float
    growth: float
    high: float
    word: Word


def compared(rows: Sequence[Row], warm_s: float, judged: Iterable[Judged] = JUDGED) -> list[Verdict]:
    """The verdict on each figure that both halves have. `t_s` of a row is when it was sampled; what was sampled up to
    `warm_s` counts for nothing. ValueError for a run too short to be judged.
    """
    counted = [row for row in rows if row["t_s"] > warm_s]
    if len(counted) < 2 * FEWEST:
        raise ValueError(f"{len(counted)} samples after the warm-up are too few to compare")
    end = counted[-1]["t_s"]
    middle = (warm_s + end) / 2
    found: list[Verdict] = []
    for each in judged:
        samples = [(row["t_s"], row[each.name]) for row in counted if each.name in row]
        first, second = ([one for one in samples if (one[0] > middle) is later] for later in (False, True))
        if first and len(second) >= FEWEST:
            found.append(_verdict(each, [value for _, value in first], second, end - middle))
    return found


def _verdict(judged: Judged, first: Sequence[float], second: Sequence[tuple[float, float]], seconds: float) -> Verdict:
    """What fills up to its bound rises at first; a leak goes on. So only what rises in the second half grows."""
    found, before, after = trend(second), statistics.median(first), statistics.median(value for _, value in second)
    allowed = max(after * MOST_GROWTH, judged.slack)
    word: Word = "flat" if found.high * seconds <= allowed else "unclear"
    if found.low > 0 and found.slope * seconds > allowed:
        word = "GROWS"
    return Verdict(judged.name, before, after, found.low * HOUR_S, found.slope * HOUR_S, found.high * HOUR_S, word)


def table(verdicts: Iterable[Verdict]) -> str:
    """The verdicts as text, a line each."""
    lines = [f"{'figure':<16}{'first half':>12}{'second half':>13}{'an hour adds':>14}{'at least':>10}{'at most':>10}"]
    for each in verdicts:
        mark = "" if each.word == "flat" else f"  {each.word}"
        bounds = f"{each.growth:>+14.2f}{each.low:>+10.2f}{each.high:>+10.2f}"
        lines.append(f"{each.name:<16}{each.first:>12.2f}{each.second:>13.2f}{bounds}{mark}")
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
