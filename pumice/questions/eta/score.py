# SPDX-License-Identifier: Apache-2.0
"""The score of estimates: made at moments of an ended run, compared with the real starts.

The naive estimate beside them: a job starts when all that runs and all that was asked for before it has run, at the
median of what is known, the cluster always full.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio
import msgspec

from pumice.belonging import group_of, owner_of
from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.life import Life
from pumice.config.errors import ConfigError
from pumice.core.objects.metadata import Object, section
from pumice.errors import InputError
from pumice.questions.eta.estimate import Estimate, FutureSampling, estimates_of
from pumice.questions.eta.futures import Lasting, Middle, PodsOfFork, tasks_of
from pumice.questions.eta.runs import RunBook
from pumice.questions.history.rewind import newest_cycle
from pumice.questions.measures.amounts import Amount, allocatable_of, request_of
from pumice.questions.whatif.sources import handed_in, journaled, with_deadline
from pumice.results import Result
from pumice.runtime.arrivals import arrival_at, arriving
from pumice.units import BEGAN

if TYPE_CHECKING:
    from pumice.core.messages.events import ConfigLoaded

# --- Rehearsals

FAR_S: Final = 10 * 365 * 86_400.0


@dataclass(slots=True)
class Rehearsal:
    """A run to score. `book`: its real course; `moments`: forks without later events."""

    book: RunBook = field(default_factory=RunBook)
    moments: list[Fork] = field(default_factory=list["Fork"])


def to_rehearse(objects: Iterable[Object], told: ConfigLoaded, first: int | None, denser: float) -> Fork:
    """Return a fork in which objects come at their time, the `first` so many (None: all), `denser` times as fast; they
    run as long as they say.
    """
    now: list[Object] = []
    later: list[tuple[float, Object]] = []
    for obj in objects:
        said = arriving(obj)
        at = None if said is None else arrival_at(said, BEGAN)
        if at is None:
            now.append(obj)
        else:
            later.append((max(at - BEGAN, 0.0), with_deadline(obj)))
    later.sort(key=lambda each: each[0])
    return replace(
        handed_in(now, BEGAN, told), later=tuple((after_s / denser, obj) for after_s, obj in islice(later, first))
    )


def rehearsed(fork: Fork, number: int, advance: Callable[[int], None] = lambda step: None) -> Rehearsal:
    """Simulate a fork whose `later` jobs are all to come, and stop `number` times on the way, each time after as many
    more have come. It ends when all jobs have started, or nothing happens any more. Raises InputError where there are
    fewer arrivals than moments.
    """
    arrivals = sorted(after_s for after_s, _ in fork.later)
    if len(arrivals) < number + 1:
        raise InputError(f"{number} moments want {number + 1} arrivals at least, there are {len(arrivals)}")
    due = [arrivals[len(arrivals) * place // (number + 1)] for place in range(1, number + 1)]
    found, last = Rehearsal(), arrivals[-1]
    life = Life(fork, 0, found.book.note, lambda result, at: None)
    for elapsed in life.moments(FAR_S):
        while len(found.moments) < number and elapsed >= due[len(found.moments)]:
            found.moments.append(replace(life.fork(), later=()))
            advance(1)
        if elapsed >= last and len(found.book.started) >= len(found.book.asked):
            break
    return found


# --- Moments of a run


def moments_of(file: Path, number: int) -> Iterator[Fork]:
    """Yield so many cycles of the journal, evenly spread, without those that it no longer holds."""
    newest = anyio.run(newest_cycle, file)
    for cycle in sorted({max(round(newest * place / (number + 1)), 1) for place in range(1, number + 1)}):
        try:
            yield anyio.run(journaled, file, cycle)
        except ConfigError:
            continue


PODS: Final = "pods"
NOISE_S: Final = 0.001
"""Estimates are given in milliseconds: a start at most that far off counts as right."""


class Scored(NamedTuple):
    """One estimate and the real start: all in seconds from the moment of the estimate, which is the `moment`-th from 0
    on. `naive_s` None: unknown.
    """

    job: str
    at: float
    estimate: Estimate
    came_s: float
    naive_s: float | None
    moment: int = 0


class Calibration(msgspec.Struct, kw_only=True):
    """Accuracy of estimates. `coverage`: the part of all starts that lay in the 80 % range; `width_s`: the median width
    of ranges; `error_s` and `naive_error_s`: the median errors, of the jobs for which both have an estimate
    (`compared`). A range without an end holds all later times, and is left out of the widths; there are so many
    `endless` ones. `earlier` and `later`: starts before and after the range. `said_error_s`: the error when every pod
    runs as long as it says itself, where all do; the rest of it is due to jobs that came after the moment.
    """

    asked: int
    known: int
    coverage: float | None
    width_s: float | None
    endless: int
    compared: int
    error_s: float | None
    naive_error_s: float | None
    earlier: int
    later: int
    said_error_s: float | None


class EtaScore(Calibration, Result, kw_only=True, tag="eta/1"):
    """Score of estimates at all moments of a run; `second_half`: at the later half of them."""

    second_half: Calibration


def calibration_of(scored: Iterable[Scored]) -> Calibration:
    """Return the accuracy over all estimates."""
    found = list(scored)
    known = [each for each in found if each.estimate.known]
    widths = [width for each in known if (width := _width(each.estimate)) is not None]
    both = [
        (_off(each.estimate.likely_s, each), _off(each.naive_s, each)) for each in known if each.naive_s is not None
    ]
    said = [_off(each.estimate.said_s, each) for each in known if each.estimate.said_s is not None]
    later = sum(each.estimate.high_s is not None and each.came_s > each.estimate.high_s + NOISE_S for each in known)
    inside = sum(map(_inside, known))
    return Calibration(
        asked=len(found),
        known=len(known),
        coverage=inside / len(known) if known else None,
        width_s=statistics.median(widths) if widths else None,
        endless=len(known) - len(widths),
        compared=len(both),
        error_s=statistics.median(ours for ours, _ in both) if both else None,
        naive_error_s=statistics.median(theirs for _, theirs in both) if both else None,
        earlier=len(known) - inside - later,
        later=later,
        said_error_s=statistics.median(said) if said else None,
    )


def _off(said_s: float | None, scored: Scored) -> float:
    return abs((said_s or 0.0) - scored.came_s)


def _width(estimate: Estimate) -> float | None:
    return None if estimate.high_s is None or estimate.low_s is None else estimate.high_s - estimate.low_s


def _inside(scored: Scored) -> bool:
    low, high = scored.estimate.low_s, scored.estimate.high_s
    return low is not None and low - NOISE_S <= scored.came_s and (high is None or scored.came_s <= high + NOISE_S)


def score(
    forks: Iterable[Fork], book: RunBook, sampling: FutureSampling, advance: Callable[[int], None] = lambda step: None
) -> list[Scored]:
    """Score the estimates at each of these moments of one run, which `book` knows whole: of the jobs that had been
    requested and had not started, as far as they did later. A fork has no later events, and ended runs are cut there.
    """
    found: list[Scored] = []
    for moment, fork in enumerate(forks):
        waiting = frozenset(
            job for job, at in book.started.items() if at > fork.now and book.asked.get(job, at) <= fork.now
        )
        if waiting:
            naive = naive_of(fork, book)
            for job, estimate in estimates_of(fork, book.ended, sampling, waiting).items():
                came_s = book.started[job] - fork.now
                found.append(Scored(job, fork.now, estimate, came_s, naive.get(job), moment))
        advance(1)
    return found


def naive_of(fork: Fork, book: RunBook) -> dict[str, float | None]:
    """Return for each waiting job the work before it, in seconds of the whole cluster; None where some of it is
    unknown.
    """
    pods = PodsOfFork(fork, book.ended)
    work = _Work(pods.fork, Middle(pods.knowledge))
    running = 0.0
    waiting = dict[str, float | None]()
    groups = {_key(obj): owner_of(obj) for obj in pods.fork.objects if obj["kind"] == "PodGroup"}
    for place, pod in pods.pods.items():
        obj = pods.fork.objects[place]
        needs = work.of(pod, section(obj, "spec"), 1)
        if section(obj, "spec").get("nodeName"):
            running += needs or 0.0
        elif owner := groups.get(group_of(str(obj["metadata"].get("namespace") or "default"), obj)):
            waiting[owner] = _sum(waiting.get(owner, 0.0), needs)
    begun = set(waiting) | {owner for owner, at in book.started.items() if at <= fork.now}
    jobs = {_key(obj): obj for obj in pods.fork.objects if obj["kind"] == "Job"}
    for name in jobs.keys() - begun:  # its pods are still to be made
        waiting[name] = 0.0
        for pod, task in tasks_of(jobs[name]):
            spec = section(section(task, "template"), "spec")
            waiting[name] = _sum(waiting[name], work.of(pod, spec, int(task.get("replicas") or 0)))
    before: float | None = None if pods.unknown() else running
    found: dict[str, float | None] = {}
    for name in sorted(waiting, key=lambda each: (book.asked.get(each, 0.0), each)):
        found[name] = before
        before = _sum(before, waiting[name])
    return found


class _Work:
    """Work of pods relative to the whole cluster: seconds, at the median of the known running times."""

    def __init__(self, fork: Fork, middle: Middle) -> None:
        self._middle = middle
        self._whole: dict[str, float] = {}
        for obj in fork.objects:
            if obj["kind"] == "Node":
                for name, value in allocatable_of(section(obj, "status")).items():
                    self._whole[name] = self._whole.get(name, 0.0) + value

    def of(self, pod: Lasting, spec: Object, count: int) -> float | None:
        """Return the work; None for an unknown duration."""
        lasts_s = self._middle.lasts_s(pod)
        if lasts_s is None:
            return None
        return max(lasts_s - pod.elapsed_s, 0.0) * _part(request_of(spec), self._whole) * count


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _part(request: Amount, whole: Amount) -> float:
    """Return the largest part of the cluster that it asks for."""
    return max(
        (value / whole[name] for name, value in request.items() if whole.get(name) and name != PODS), default=0.0
    )


def _key(obj: Object) -> str:
    return f"{obj['metadata'].get('namespace') or 'default'}/{obj['metadata']['name']}"
