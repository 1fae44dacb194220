# SPDX-License-Identifier: Apache-2.0
"""Defaults are expectations of every policy. Each is checked on both sides, and fails only where base holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from pumice.config.durations import duration_s
from pumice.questions.gate.judging import Judged, Judgement, Pair, Stakes
from pumice.questions.gate.policy import DEFAULT_NAMES, DefaultLimits
from pumice.questions.gate.record import RecordedEviction, RunRecord

SYSTEM: Final = "kube-system"
SHOWN: Final = 3
"""Number of findings that a message names."""
LATE: Final = 0.05
LATE_S: Final = 60.0
"""A job that base starts so shortly before the horizon may well start after it under head: a part, and seconds at
least."""

Found = list[str]


def defaults(limits: DefaultLimits, workload: str, pair: Pair) -> Iterator[Judged]:
    """Check the defaults that are on in this policy, on the first draw of the workload."""
    within_s = duration_s(limits.evicted_again_within) or 0.0
    rules: Mapping[str, Callable[[RunRecord], Found]] = {
        EQUAL: _equal,
        AGAIN: lambda record: _again(record, within_s),
        SYSTEM_PODS: _system,
        LOOPS: _loops,
        REFUSED: lambda record: list(record.refused),
    }
    for name, rule in rules.items():
        if name not in limits.off:
            yield _judged(name, workload, pair, rule)
    if UNSTARTED not in limits.off:
        yield _unstarted(workload, pair)


EQUAL, AGAIN, SYSTEM_PODS, LOOPS, UNSTARTED, REFUSED, FILTERS = DEFAULT_NAMES
WORDS: Final[Mapping[str, str]] = {
    EQUAL: "no pod is evicted for one of its queue that is not more important",
    AGAIN: "no pod is evicted a second time soon after",
    SYSTEM_PODS: "no pod of kube-system is evicted",
    LOOPS: "jobs do not take each other's places again and again",
    UNSTARTED: "every job starts that starts under base",
    REFUSED: "the API takes every object",
    FILTERS: "every pod goes to a node that base's filters allow",
}


def _judged(name: str, workload: str, pair: Pair, rule: Callable[[RunRecord], Found]) -> Judged:
    base, head = rule(pair.base), rule(pair.head)
    is_open = bool(pair.head.stopped) if not head else bool(pair.base.stopped) and not base
    return told(name, workload, base, head, is_open=is_open)


def told(name: str, workload: str, base: Found, head: Found, *, is_open: bool = False) -> Judged:
    """Return the judgement of a default by its failures on either side; `is_open`: a run ended too early to say."""
    if is_open:
        verdict = Judgement.BASE_FAILS if base else Judgement.UNDECIDED
    elif head:
        verdict = Judgement.BOTH if base else Judgement.FAILS
    else:
        verdict = Judgement.FIXED if base else Judgement.OK
    return Judged(
        name,
        workload,
        WORDS[name],
        verdict,
        float(len(base)),
        float(len(head)),
        "",
        Stakes(),
        1,
        int(bool(base)),
        int(bool(head)),
        _some(head if verdict is Judgement.FAILS else ()),
    )


def _some(found: Sequence[str]) -> str:
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; ".join(found[:SHOWN]) + more


def _equal(record: RunRecord) -> Found:
    return [
        f"{_pod(each)} (priority {each.priority}) for {each.by} ({each.by_priority})"
        for each in record.evictions
        if each.by_priority is not None and each.by_priority <= each.priority and each.queue == each.by_queue
    ]


def _again(record: RunRecord, within_s: float) -> Found:
    times = dict[str, list[float]]()
    for each in record.evictions:
        times.setdefault(each.pod, []).append(each.at)
    return [
        f"{pod} {len(at)} times, {min(later - earlier for earlier, later in pairwise(at)):g} s apart"
        for pod, at in times.items()
        if any(later - earlier <= within_s for earlier, later in pairwise(at))
    ]


def _system(record: RunRecord) -> Found:
    return [_pod(each) for each in record.evictions if each.pod.startswith(f"{SYSTEM}/")]


def _loops(record: RunRecord) -> Found:
    return [f"{', '.join(each.jobs[:SHOWN])}: {each.times} evictions" for each in record.loops]


def _pod(each: RecordedEviction) -> str:
    return f"{each.pod} at {each.at:g} s"


def _unstarted(workload: str, pair: Pair) -> Judged:
    """Return jobs that start under one side only, and not just before the horizon."""
    horizon = pair.horizon_s
    # a run until nothing more happens has no moment that cuts a late start off
    margin = 0.0 if pair.base.idle and pair.head.idle else max(LATE_S, horizon * LATE)
    base, head = ({job.job: job.started for job in record.jobs} for record in pair)

    def lost(one: dict[str, float | None], other: dict[str, float | None]) -> Found:
        return sorted(
            name for name, at in one.items() if at is not None and at <= horizon - margin and other.get(name) is None
        )

    return told(UNSTARTED, workload, lost(head, base), lost(base, head), is_open=not pair.is_whole)
