"""Eviction loops: jobs that take each other's places again and again, and jobs that come back only to be evicted again,
by whomever.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from pumice.whatif.future import EvictedPod

TWICE: Final = 2
"""So often the same job must have lost pods to the same others before it is called a loop."""
THRICE: Final = 3
"""So often a job of no ring must have been evicted, having come back in between."""


@dataclass(frozen=True, slots=True)
class EvictionLoop:
    """`jobs` of which each has lost pods for the next, and the last for the first; one alone is evicted for itself. Or,
    where `rounds` says so: one that was evicted so often, after it had come back each time, for those in `by`.

    `pods` that were evicted in it, `times` how often any was; `period_s` from one time that a job lost pods to its
    next, the median; `votes`: by job, what the plugins said of its pods when it last came round.
    """

    jobs: tuple[str, ...]
    pods: tuple[str, ...]
    times: int
    period_s: float
    actions: tuple[str, ...]
    votes: dict[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    rounds: int = 0
    by: tuple[str, ...] = ()


def loops_of(evictions: Sequence[EvictedPod]) -> tuple[EvictionLoop, ...]:
    """Rings of jobs that evict each other, each job having lost pods at two moments at least; then jobs of no ring that
    came round three times at least.
    """
    rings = _rings_of(evictions)
    inside = {job for ring in rings for job in ring.jobs}
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
    """When it was evicted first, and again after one of its pods had come back in between."""
    moments: list[float] = []
    back: list[float] = []
    for each in lost:
        if not moments or any(moments[-1] < at <= each.at_s for at in back):
            moments.append(each.at_s)
        if each.returns_s is not None:
            back.append(each.returns_s)
    return moments


def _rings_of(evictions: Sequence[EvictedPod]) -> tuple[EvictionLoop, ...]:
    lost: defaultdict[str, list[EvictedPod]] = defaultdict(list)
    for each in evictions:
        if each.by:
            lost[each.job].append(each)
    often = {job: found for job, found in lost.items() if len({each.at_s for each in found}) >= TWICE}
    towards = {job: sorted({each.by for each in found} & often.keys()) for job, found in often.items()}
    return tuple(_loop(ring, often) for ring in _rings(towards))


def _rings(towards: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """For each job the shortest way back to it; each ring once, from its first job by name on."""
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


def _loop(ring: tuple[str, ...], lost: Mapping[str, Sequence[EvictedPod]]) -> EvictionLoop:
    inside = [each for job in ring for each in lost[job] if each.by in ring]
    gaps: list[float] = []
    for job in ring:
        moments = sorted({each.at_s for each in lost[job] if each.by in ring})
        gaps += [later - earlier for earlier, later in pairwise(moments)]
    return EvictionLoop(
        ring,
        tuple(sorted({each.pod for each in inside})),
        len(inside),
        round(statistics.median(gaps), 3) if gaps else 0.0,
        tuple(sorted({each.action for each in inside})),
        {each.job: each.votes for each in inside if each.votes},
    )
