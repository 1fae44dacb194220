# SPDX-License-Identifier: Apache-2.0
"""Samples and their reported figures: median, least, greatest; the machine's speed and memory beside."""

from __future__ import annotations

import gc
import resource
import statistics
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Final

import msgspec

from pumice.collecting import rarely
from pumice.results import Result

CALIBRATION_STEPS: Final = 2_000_000

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Parameters:
    """The size of a scenario. Unused parameters are 0 or empty, and are left out of the report."""

    nodes: int = 0
    pods: int = 0
    gang: int = 0
    running: int = 0
    queues: int = 0
    runs: int = 5
    trace: str = ""
    backend: str = ""

    def used(self) -> dict[str, int | str]:
        """Return those that the scenario uses, by name."""
        values: dict[str, int | str] = asdict(self)
        return {name: value for name, value in values.items() if value}


@dataclass(slots=True)
class Samples:
    """Measured values by figure: the unit and one value a run."""

    values: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    units: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, figure: str, value: float, unit: str) -> None:
        """Add one more run's value of a figure."""
        self.values.setdefault(figure, []).append(value)
        self.units[figure] = unit

    @contextmanager
    def timed(self, figure: str) -> Generator[None]:
        """Add the seconds that the block took."""
        started = time.perf_counter()
        yield
        self.add(figure, time.perf_counter() - started, "s")

    def figures(self) -> dict[str, Figure]:
        """Return the measured figures, by name."""
        return {
            name: Figure(
                value=statistics.median(values),
                unit=self.units[name],
                min=min(values),
                max=max(values),
                runs=len(values),
            )
            for name, values in self.values.items()
        }


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """The median, the least and the greatest of so many runs, in a unit."""

    value: float
    unit: str
    min: float
    max: float
    runs: int


class BenchResult(Result, kw_only=True, tag="bench/1"):
    """Measurements of a scenario of one size. `calibration_s`: seconds of a fixed loop, which show the speed of the
    machine; `peak_rss_bytes`: the largest memory of the process.
    """

    scenario: str
    parameters: dict[str, int | str]
    figures: dict[str, Figure]
    calibration_s: float
    peak_rss_bytes: int


def report(scenario: str, parameters: Parameters, samples: Samples) -> BenchResult:
    """Return the result of `pumice bench`."""
    return BenchResult(
        scenario=scenario,
        parameters=parameters.used(),
        figures=samples.figures(),
        calibration_s=calibrate(),
        peak_rss_bytes=peak_rss_bytes(),
    )


def calibrate() -> float:
    """Return processor seconds (median of 3) of a fixed loop of plain Python: how fast this machine is just now."""
    return statistics.median(_calibration_loop() for _ in range(3))


def _calibration_loop() -> float:
    started = time.process_time()
    total = 0
    for step in range(CALIBRATION_STEPS):
        total = (total * 31 + step) % 1_000_003
    return time.process_time() - started


def peak_rss_bytes() -> int:
    """Return the most memory that this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def settled() -> Generator[None]:
    """Hide loaded objects from the collector while the block runs, and collect rarely, as in the running scheduler."""
    gc.collect()
    gc.freeze()
    try:
        with rarely():
            yield
    finally:
        gc.unfreeze()
