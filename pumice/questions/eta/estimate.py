# SPDX-License-Identifier: Apache-2.0
"""Estimated starts of jobs, as ranges over sampled futures; and a second result from the durations that pods state."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from pumice.questions.adviser.reasons import WaitReason
from pumice.questions.oneshot.left_out import left_out
from pumice.results import Laid
from pumice.units import time_span

if TYPE_CHECKING:
    from pathlib import Path

    from pumice.cluster.kernel.fork import Fork
    from pumice.questions.eta.futures import PodsOfFork
    from pumice.questions.eta.runs import EndedRun

LOW, MEDIAN, HIGH = 0.1, 0.5, 0.9
ROUNDING: Final = 1e-9
SAMPLES: Final = 20
HORIZON_S: Final = 24 * 3600.0


class Estimate(msgspec.Struct, frozen=True):
    """Estimated start of a job: seconds from now.

    `low_s` and `high_s` hold 80 of 100 sampled futures between them, `median_s` is the middle one; `high_s` null:
    beyond the horizon. `likely_s`: the start in the future in which every pod runs as long as half of its like do, or
    the end of the range that is next to it; the sampled futures have a few very long runs, by which half of their
    starts come too late. Not `known`: in half of the futures it does not start at all, and `why` says what is missing.
    `from`: running pods by what is known of them. `with_known_durations_s`: the start when every pod runs as long as
    it says itself; null: not all say so, or it is beyond the horizon. `supposed`: what was not asked of processes
    outside, and what else a future leaves out, in sentences. `wait`: what it waits for now, where that was asked.
    """

    known: bool
    low_s: float | None = None
    likely_s: float | None = None
    high_s: float | None = None
    median_s: float | None = None
    basis: dict[str, int] = msgspec.field(name="from", default_factory=dict[str, int])
    why: str = ""
    said_s: float | None = msgspec.field(name="with_known_durations_s", default=None)
    supposed: tuple[str, ...] = ()
    wait: WaitReason | None = None

    @property
    def range_words(self) -> str:
        """Return the range in words."""
        if not self.known:
            return "not known"
        high = "later than the horizon" if self.high_s is None else time_span(self.high_s)
        return f"{time_span(self.low_s or 0.0)} … {high}"


class Estimates(Laid, tag="eta/1"):
    """When jobs start, by job ("namespace/name")."""

    jobs: dict[str, Estimate]


@dataclass(frozen=True, slots=True)
class FutureSampling:
    """The sampling: `samples` futures of `horizon_s` seconds each, drawn from `seed`."""

    samples: int = SAMPLES
    horizon_s: float = HORIZON_S
    seed: int = 0


def lived_s(sampling: FutureSampling) -> int:
    """Return how many seconds of all futures are simulated at most, those of the likely one included."""
    return (sampling.samples + 2) * int(sampling.horizon_s)


class _LivedSeconds:
    """Reports whole seconds of one future after the other; if one ends early, the rest is reported at its end."""

    def __init__(self, advance: Callable[[int], None], horizon_s: float) -> None:
        self._advance, self._whole, self._told = advance, int(horizon_s), 0

    def __call__(self, seconds: float) -> None:
        """Note how many seconds of this future have gone by."""
        if (more := min(int(seconds), self._whole) - self._told) > 0:
            self._told += more
            self._advance(more)

    def end(self) -> None:
        """Note that this future is over."""
        self(self._whole)
        self._told = 0


def estimates_of(
    fork: Fork,
    ended: Iterable[EndedRun],
    sampling: FutureSampling,
    asked: frozenset[str] | None = None,
    advance: Callable[[int], None] = lambda step: None,
    *,
    alone: bool = True,
    plugins_dir: Path | None = None,
) -> dict[str, Estimate]:
    """Return estimates by job ("namespace/name" of its PodGroup's owner), of jobs that have not started: those `asked`
    for (None: all). `ended`: known runs; those that ended after the fork are ignored. `advance` is called with whole
    seconds of simulated time, of `lived_s` in all. Not `alone`: by all cores, where that pays.
    """
    from pumice.questions.eta import sampled as s  # noqa: PLC0415 - a kernel, and all controllers

    known, lived = tuple(ended), _LivedSeconds(advance, sampling.horizon_s)
    of = partial(s.sampled, fork, known, sampling.horizon_s, sampling.seed, asked)
    futures = of()
    lives = futures.pods
    numbers = [*range(sampling.samples), s.MIDDLE, *([] if lives.unsaid() else [s.SAID])]
    with s.other_processes(of, 0 if alone else len(lives.fork.objects), len(numbers), plugins_dir) as executor:
        by_number = dict(zip(numbers, futures.all_starts(numbers, lived, lived.end, executor), strict=True))
    drawn, middle = [by_number[number] for number in range(sampling.samples)], by_number[s.MIDDLE]
    said = by_number.get(s.SAID, dict[str, float | None]())
    if s.SAID not in by_number:
        lived.end()
    names = {name for each in drawn for name in each if asked is None or name in asked}
    supposed, found = tuple(left_out(fork)), dict[str, Estimate]()
    for name in sorted(names):
        starts = [each.get(name) for each in drawn]
        if any(start is None or start > 0 for start in starts):
            told = Estimate(known=False, basis=lives.sources(), said_s=said.get(name), supposed=supposed)
            low, median, high = range_in(starts)
            if low is None or median is None:
                found[name] = replace(told, why=_why(lives, sampling.horizon_s))
            else:
                likely = likely_in(middle.get(name), low, median, high)
                found[name] = replace(told, known=True, low_s=low, likely_s=likely, median_s=median, high_s=high)
    return found


def likely_in(middle_s: float | None, low_s: float, median_s: float, high_s: float | None) -> float:
    """Return the median within the range, since the two are drawn in different ways; `middle_s` None: it is beyond the
    horizon.
    """
    if middle_s is None:
        return median_s if high_s is None else high_s
    return max(low_s, middle_s if high_s is None else min(middle_s, high_s))


def _why(lives: PodsOfFork, horizon_s: float) -> str:
    unknown = lives.unknown()
    if unknown:
        return f"nothing is known of how long {unknown} running pods run: no like of them has ended yet"
    return f"in half of the sampled futures it does not start within {horizon_s:g} s"


def range_in(starts: Sequence[float | None]) -> tuple[float | None, float | None, float | None]:
    """Return low, median and high; None stands for later than all. The next start is one more of the same kind, which
    lies below the k-th of n in k of n + 1 cases: so ranks are of n + 1, the outer ones rounded outwards.
    """
    ranked = sorted(math.inf if start is None else start for start in starts)
    number = len(ranked)
    low, high = math.floor(LOW * (number + 1) + ROUNDING), math.ceil(HIGH * (number + 1) - ROUNDING)
    found = [ranked[rank - 1] for rank in (max(low, 1), math.ceil(MEDIAN * number), min(high, number))]
    below, middle, above = (None if math.isinf(each) else each for each in found)
    return below, middle, above
