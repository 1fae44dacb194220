# SPDX-License-Identifier: Apache-2.0
"""Eviction loops: jobs, or queues, that take each other's places again and again, and jobs that come back only to be
evicted again, by whichever job.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from pumice.questions.whatif.future import EvictedPod

TWICE: Final = 2
"""Number of times that each job of a ring must lose pods to the next one, to count as a loop."""
THRICE: Final = 3
"""Number of evictions of a job outside rings that came back in between."""


@dataclass(frozen=True, slots=True)
class EvictionLoop:
    """A loop. `jobs`: each has lost pods for the next, and the last for the first; one alone is evicted for itself. Or,
    where there are `queues`: these form the ring, by any jobs of theirs, and `jobs` are those that lost pods. Or, with
    `rounds`: one that was evicted so often, after it had come back each time, for those in `by`. Of a ring `by` are
    outside jobs for which its members lost pods again and again too, which `times` does not count.

    `pods` that were evicted in it, `times` how often any was; `period_s` from one time that a job (or queue) lost pods
    to its next, the median; `votes`: by job, what the plugins said of its pods when it last came round.
    """

    jobs: tuple[str, ...]
    pods: tuple[str, ...]
    times: int
    period_s: float
    actions: tuple[str, ...]
    votes: dict[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    rounds: int = 0
    by: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()

    @property
    def who(self) -> tuple[tuple[str, ...], bool]:
        """Return a key that equal loops in two futures share."""
        return (self.queues or self.jobs, self.rounds > 0)


class Loss(NamedTuple):
    """A loss: `loser` (a job, or its queue) lost a pod for `winner`."""

    loser: str
    winner: str
    pod: EvictedPod


def loops_of(evictions: Sequence[EvictedPod], queues: Mapping[str, str]) -> tuple[EvictionLoop, ...]:
    """Return rings of jobs that evict each other, each job having lost pods to its next at two moments at least; rings
    of queues, by their jobs that are in none; then jobs of no ring that came round three times at least. `queues`: by
    job.
    """
    rings = _rings_of([Loss(each.job, each.by, each) for each in evictions if each.by])
    inside = {job for ring in rings for job in ring.jobs}
    between = [Loss(queues.get(each.job, ""), queues.get(each.by, ""), each) for each in evictions if each.by]
    between = [each for each in between if each.pod.job not in inside and each.loser != each.winner]
    rings += _rings_of(between, of_queues=True)
    inside |= {job for ring in rings for job in ring.jobs}
    lost: defaultdict[str, list[EvictedPod]] = defaultdict(list)
    for each in evictions:
        lost[each.job].append(each)
    again = [_again(job, lost[job]) for job in sorted(lost.keys() - inside)]
    return (*rings, *(loop for loop in again if loop.rounds >= THRICE))


def _again(job: str, lost: Sequence[EvictedPod]) -> EvictionLoop:
    moments = _rounds(lost)
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    return EvictionLoop(
        (job,),
        tuple(sorted({each.pod for each in lost})),
        len(lost),
        round(statistics.median(gaps), 3) if gaps else 0.0,
        tuple(sorted({each.action for each in lost})),
        {each.job: each.votes for each in lost if each.votes},
        len(moments),
        tuple(name for name, _ in Counter(each.by for each in lost if each.by).most_common()),
    )


def _rounds(lost: Sequence[EvictedPod]) -> list[float]:
    """Return the times of the first eviction, and of each later one after one of its pods had come back in between."""
    moments: list[float] = []
    back: list[tuple[float, float]] = []  # when it was evicted and when it was there again, which may be immediately
    for each in lost:
        last = moments[-1] if moments else -1.0
        came_back = any(last < came <= each.at_s or went == came == last < each.at_s for went, came in back)
        if not moments or came_back:
            moments.append(each.at_s)
        if each.returns_s is not None:
            back.append((each.at_s, each.returns_s))
    return moments


def _rings_of(losses: Sequence[Loss], *, of_queues: bool = False) -> list[EvictionLoop]:
    lost: defaultdict[str, list[Loss]] = defaultdict(list)
    moments: defaultdict[tuple[str, str], set[float]] = defaultdict(set)
    for each in losses:
        lost[each.loser].append(each)
        moments[each.loser, each.winner].add(each.pod.at_s)
    towards: dict[str, list[str]] = {loser: [] for loser in lost}
    for loser, winner in sorted(moments):
        if winner in lost and len(moments[loser, winner]) >= TWICE:
            towards[loser].append(winner)
    return [_loop(ring, lost, of_queues=of_queues) for ring in _rings(towards)]


def _rings(towards: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """Return for each job the shortest way back to it; each ring once, from its first job by name on."""
    found: dict[frozenset[str], tuple[str, ...]] = {}
    for job in sorted(towards):
        ring = _way_back(job, towards)
        if ring and frozenset(ring) not in found:
            first = ring.index(min(ring))
            found[frozenset(ring)] = (*ring[first:], *ring[:first])
    return sorted(found.values())


def _way_back(job: str, towards: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    ways: list[tuple[str, ...]] = [(job,)]
    seen = {job}
    for way in ways:
        for following in towards[way[-1]]:
            if following == job:
                return way
            if following not in seen:
                seen.add(following)
                ways.append((*way, following))
    return ()


def _loop(ring: tuple[str, ...], lost: Mapping[str, Sequence[Loss]], *, of_queues: bool) -> EvictionLoop:
    inside = [each.pod for loser in ring for each in lost[loser] if each.winner in ring]
    gaps: list[float] = []
    for loser in ring:
        moments = sorted({each.pod.at_s for each in lost[loser] if each.winner in ring})
        gaps += [later - earlier for earlier, later in pairwise(moments)]
    return EvictionLoop(
        tuple(sorted({each.job for each in inside})) if of_queues else ring,
        tuple(sorted({each.pod for each in inside})),
        len(inside),
        round(statistics.median(gaps), 3) if gaps else 0.0,
        tuple(sorted({each.action for each in inside})),
        {each.job: each.votes for each in inside if each.votes},
        by=_besides(ring, lost),
        queues=ring if of_queues else (),
    )


def _besides(ring: Sequence[str], lost: Mapping[str, Sequence[Loss]]) -> tuple[str, ...]:
    moments: defaultdict[str, set[float]] = defaultdict(set)
    for each in (each for loser in ring for each in lost[loser] if each.winner not in ring):
        moments[each.winner].add(each.pod.at_s)
    return tuple(sorted(winner for winner, at in moments.items() if len(at) >= TWICE))
