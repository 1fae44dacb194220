# SPDX-License-Identifier: Apache-2.0
"""Tables that `pumice whatif` shows: jobs that start earlier or later, evictions, use of resources, waiting jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from rich.console import Console

from pumice.cli.tables.table import WholeTable
from pumice.questions.whatif.difference import FutureDifference, JobChange
from pumice.questions.whatif.future import JobFuture
from pumice.questions.whatif.loops import EvictionLoop
from pumice.units import counted, time_span

SHOWN: Final = 30
WORDS: Final = {
    "Comes": "is new",
    "Goes": "is deleted",
    "Starts": "starts, and would not have",
    "StartsNoMore": "does not start any more",
    "StartsEarlier": "starts earlier",
    "StartsLater": "starts later",
    "AllPlaced": "gets all its pods, and would not have",
    "AllPlacedNoMore": "does not get all its pods any more",
    "AllPlacedEarlier": "has all its pods earlier",
    "AllPlacedLater": "has all its pods later",
    "EvictedMore": "is evicted more often",
    "EvictedLess": "is evicted less often",
    "RestartsMore": "restarts more often",
    "RestartsLess": "restarts less often",
    "KilledMore": "has more pods killed",
    "KilledLess": "has fewer pods killed",
    "Ends": "ends, and would not have",
    "EndsNoMore": "does not end any more",
    "EndsEarlier": "ends earlier",
    "EndsLater": "ends later",
    "LosesMore": "loses more work",
    "LosesLess": "loses less work",
    "OtherPods": "has other pods",
}


def show(console: Console, found: FutureDifference) -> None:
    """Print the differences, jobs first; then the evictions, loops and waiting jobs of the second future."""
    if found.same:
        console.print("Nothing changes.")
    _show_jobs(console, found)
    _show_moved(console, found)
    _show_evictions(console, found)
    for loop in found.loops:
        _show_loop(console, loop)
    for loop in found.ended:
        console.print(f"No more: {_ring(loop)}")
    _show_used(console, found)
    _show_pending(console, found)
    _show_unknown(console, found)
    for sentence in found.supposed:
        console.print(sentence)


def _show_jobs(console: Console, found: FutureDifference) -> None:
    if not found.jobs:
        return
    shown = list(found.jobs.items())[:SHOWN]
    elastic = any(side and side.all_placed_s != side.start_s for _, change in shown for side in _sides(change))
    columns = {title: told for title, told in TIMES.items() if elastic or title != "all pods"}
    table = WholeTable("job", "change", "by", *columns)
    for name, change in shown:
        table.add_row(name, WORDS[change.code], _by(change), *_pairs(change, columns))
    console.print(table)
    _more(console, len(found.jobs), "jobs")
    _show_losses(console, [(name, change) for name, change in shown if any(map(_loses, _sides(change)))])


def _show_losses(console: Console, jobs: Sequence[tuple[str, JobChange]]) -> None:
    if not jobs:
        return
    title = "work lost: how long pods had run, added up, that were evicted, killed or failed"
    table = WholeTable("job", *LOSSES, title=title)
    for name, change in jobs:
        table.add_row(name, *_pairs(change, LOSSES))
    console.print(table)


def _loses(job: JobFuture | None) -> bool:
    return job is not None and bool(job.killed or job.restarts or job.lost_pod_s)


def _pairs(change: JobChange, columns: Mapping[str, Told]) -> list[str]:
    return [_pair([told(side) if side else "" for side in _sides(change)]) for told in columns.values()]


def _sides(change: JobChange) -> tuple[JobFuture | None, JobFuture | None]:
    return change.before, change.after


def _by(change: JobChange) -> str:
    return "" if change.by_s is None else time_span(abs(change.by_s))


def _pair(sides: list[str]) -> str:
    return sides[0] if sides[0] == sides[1] else f"{sides[0] or '-'} → {sides[1] or '-'}"


def _moment(seconds: float | None) -> str:
    return "" if seconds is None else f"+{time_span(seconds)}"


Told = Callable[[JobFuture], str]
TIMES: Final[dict[str, Told]] = {
    "start": lambda job: _moment(job.start_s),
    "all pods": lambda job: _moment(job.all_placed_s),
    "end": lambda job: _moment(job.end_s),
    "evicted": lambda job: str(job.evictions),
}
LOSSES: Final[dict[str, Told]] = {
    "pods killed": lambda job: str(job.killed),
    "restarts": lambda job: str(job.restarts),
    "lost": lambda job: time_span(job.lost_pod_s),
}


def _show_moved(console: Console, found: FutureDifference) -> None:
    """Print pods that are placed on other nodes, though nothing else may change by that."""
    moved = found.moved_pods
    if not moved:
        return
    console.print(f"{counted(len(moved), 'pod')} on another node:")
    for pod, (was, now) in list(moved.items())[:SHOWN]:
        console.print(f"  {pod}: {was} → {now}")
    _more(console, len(moved), "pods")


def _show_evictions(console: Console, found: FutureDifference) -> None:
    after = found.after.evictions
    if not after and not found.before.evictions:
        console.print("No evictions.")
    elif not after:
        console.print("No evictions after the change.")
    if after:
        table = WholeTable(
            "at", "evicted", "for", "by action", "had run", "is back", title="evictions, after the change"
        )
        for each in after[:SHOWN]:
            back = "no" if each.returns_s is None else _moment(each.returns_s)
            ran = "" if each.ran_s is None else time_span(each.ran_s)
            table.add_row(_moment(each.at_s), each.pod, each.by, each.action, ran, back)
        console.print(table)
        _more(console, len(after), "evictions")
    spared = len(found.spared)
    if spared:
        console.print(f"No longer evicted: {counted(spared, 'pod')}.")


def _show_loop(console: Console, loop: EvictionLoop) -> None:
    acts = f"{loop.times} evictions by {', '.join(loop.actions)}"
    said = f"{_ring(loop)}, again and again: {acts}" if loop.rounds else f"An eviction loop: {_ring(loop)}, {acts}"
    console.print(f"{said}, every {time_span(loop.period_s)}: {_names(loop.pods)}")
    for job, votes in loop.votes.items():
        console.print(f"  of {job}: {'; '.join(votes)}")


def _ring(loop: EvictionLoop) -> str:
    if loop.rounds:
        return f"{loop.jobs[0]} is evicted {loop.rounds} times" + (f" for {_names(loop.by)}" if loop.by else "")
    ring = tuple(f"queue {name}" for name in loop.queues) or loop.jobs
    besides = f" (and for {_names(loop.by)} besides)" if loop.by else ""
    return " is evicted for ".join((*ring, ring[0])) + besides


def _names(pods: Iterable[str]) -> str:
    names = list(pods)
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _show_used(console: Console, found: FutureDifference) -> None:
    before, after = found.before, found.after
    names = [name for name in dict.fromkeys([*before.resources, *after.resources]) if name != "pods"]
    table = WholeTable("", *names, title="used, of what the nodes have over the whole time")
    for side, future in (("before", before), ("after", after)):
        table.add_row(
            side, *[_percent(future.resources[name].utilisation if name in future.resources else 0) for name in names]
        )
    for queue in sorted({*before.queues, *after.queues} - {""}):
        cells: list[str] = []
        for name in names:
            told = [
                future.queues[queue].resources.get(name) if queue in future.queues else None
                for future in (before, after)
            ]
            cells.append(_pair([_percent(each.utilisation) if each else "" for each in told]))
        table.add_row(f"queue {queue}", *cells)
    console.print(table)


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _show_pending(console: Console, found: FutureDifference) -> None:
    waiting, before = found.after.pending, found.before.pending
    if waiting:
        table = WholeTable(
            "job", "pods", "why", "in words", title="waiting at the end, after the change", sentences=True
        )
        for name, job in list(waiting.items())[:SHOWN]:
            was = before.get(name)
            pods = _pair([str(was.pods) if was else "0", str(job.pods)])
            why = _pair([was.code if was else "", job.code])
            table.add_row(name, pods, why, job.message)
        console.print(table)
        _more(console, len(waiting), "jobs")
    else:
        console.print("At the end no job waits.")
    for name in sorted(before.keys() - waiting.keys())[:SHOWN]:
        console.print(f"{name} does not wait any more ({before[name].code}).")


def _show_unknown(console: Console, found: FutureDifference) -> None:
    after = found.after
    if after.unknown_running or after.unknown_waiting:
        supposed = time_span(after.supposed_s) if after.supposed_s else "beyond the horizon"
        console.print(
            f"{after.unknown_running} running and {after.unknown_waiting} waiting pods do not say how long they run "
            f"(pumice.dev/duration, activeDeadlineSeconds): {supposed} is supposed (--default-duration).",
        )
    for who, why in after.denied:
        console.print(f"{who}: {why}")


def _more(console: Console, count: int, what: str) -> None:
    if count > SHOWN:
        console.print(f"… and {count - SHOWN} more {what}: -o json has all.")
