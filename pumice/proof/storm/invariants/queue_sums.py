# SPDX-License-Identifier: Apache-2.0
"""The allocated amounts that the scheduler states for each queue, against the sum of the queue's pods, parents
included.

Counted are pods on a node, or on their way to it, that neither end nor leave (source: Volcano `updateQueueStatus`). A
cycle is judged by what it could know: it must count what was there all the time since, and nothing that had gone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from pumice.core.objects.metadata import section
from pumice.proof.storm.invariants.pod_book import Amounts, PodBook, amounts

if TYPE_CHECKING:
    from pumice.core.messages.decisions import QueueStatus
    from pumice.proof.storm.invariants.truth import StormTruth

# --- Sums of amounts

Sums = defaultdict[str, defaultdict[str, int]]


def no_sums() -> Sums:
    """Return empty sums."""
    return defaultdict(lambda: defaultdict(int))


def add_up(sums: Sums, name: str, requests: Amounts, sign: int) -> None:
    """Add the pod's amounts (1), or subtract them (-1)."""
    totals = sums[name]
    for resource, amount in requests.items():
        totals[resource] += sign * amount


def what_is_over(totals: Amounts, allowed: Amounts, unnamed: int | None) -> Iterator[tuple[str, str]]:
    """Yield each resource that exceeds its limit, with a sentence. `unnamed`: the limit of resources not in `allowed`;
    None for no limit.
    """
    for resource, amount in totals.items():
        limit = allowed.get(resource, unnamed)
        if limit is not None and amount > limit:
            yield resource, f"{resource} {amount / 1000:g} of {limit / 1000:g}"


def greatest(all_of: list[Amounts]) -> Amounts:
    """Return the greatest of each amount."""
    if len(all_of) == 1:
        return all_of[0]
    names = {name for each in all_of for name in each}
    return {name: max(each.get(name, 0) for each in all_of) for name in sorted(names)}


ROOT: Final = "root"
COUNTED: Final = ("cpu", "memory", "pods", "nvidia.com/gpu")
"""Of other resources plugins may know better than the pods' requests (shares of cards, devices that are claimed)."""


def wrong_sums(truth: StormTruth, said: Iterable[QueueStatus], revision: int, leaving: Set[str]) -> Iterator[str]:
    """Yield the problems of the statuses of a cycle that had seen `revision`; `leaving`: uids of pods that cycles
    evicted.

    A gang that waits for the rest of its room is counted, too (Volcano keeps what it has allocated until the session
    ends), so what waits may be counted or not.
    """
    statuses = list(said)
    if not statuses:
        return
    least, most = _bounds(truth, revision, leaving)
    for status in statuses:
        told = amounts(status.allocated)
        for name in COUNTED:
            low, high, amount = least[status.name][name], most[status.name][name], told.get(name, 0)
            if not low <= amount <= high:
                yield f"queue {status.name} says {_words(name, amount)}; its pods: {low / 1000:g} to {high / 1000:g}"


def wrong_at_rest(truth: StormTruth) -> Iterator[str]:
    """Yield queues whose status differs from the sum of their pods when nothing changes any more.

    A pod without requests that waits may be counted: backfill gives it a node in every cycle, and the bind is refused
    where that node has no room. The session keeps it as allocated (source: Volcano `Session.Allocate`).
    """
    sums, refused = no_sums(), no_sums()
    for pod in truth.pods.values():
        if pod.stays:
            _count(truth, sums, truth.queue_of(pod.job), pod)
        elif not pod.node and not pod.leaves and not pod.requests.keys() - {"pods"}:
            _count(truth, refused, truth.queue_of(pod.job), pod)
    for queue in truth.all_of("Queue"):
        name, told = queue["metadata"]["name"], amounts(section(section(queue, "status"), "allocated"))
        for resource in COUNTED:
            more = told.get(resource, 0) - sums[name][resource]
            if not 0 <= more <= refused[name][resource]:
                amount = _words(resource, told.get(resource, 0))
                yield f"queue {name} says {amount}, its pods have {sums[name][resource] / 1000:g}"


def _bounds(truth: StormTruth, revision: int, leaving: Set[str]) -> tuple[Sums, Sums]:
    """Return by queue what must be counted, and what may be counted."""
    least, most = no_sums(), no_sums()
    late = takewhile(lambda entry: entry[0] > revision, reversed(truth.went))
    there = [pod for pod in truth.pods.values() if not pod.leaves]
    for pod, stays in [*((pod, True) for pod in there), *((pod, False) for _, pod in late)]:
        queues = truth.queues_since(pod.job, revision)
        for queue in queues:
            _count(truth, most, queue, pod)
        certain = stays and pod.node and truth.bound_at[pod.uid] <= revision and pod.uid not in leaving
        for queue in queues if certain and len(queues) == 1 else ():
            _count(truth, least, queue, pod)
    return least, most


def _count(truth: StormTruth, sums: Sums, queue: str, pod: PodBook) -> None:
    """Count the pod in its queue and in all above it. Pods in the root itself count twice there, as in Volcano."""
    if truth.last_queue(queue) is None:
        return  # no session has a job of a queue that does not exist
    for name in (queue, *_above(truth, queue)):
        add_up(sums, name, pod.requests, 1)


def _above(truth: StormTruth, queue: str) -> list[str]:
    path: list[str] = []
    parent = truth.parents.get(queue) or ROOT
    while parent not in path and truth.last_queue(parent) is not None:
        path.append(parent)
        if parent == ROOT:
            break
        parent = truth.parents.get(parent) or ROOT
    return path


def _words(resource: str, amount: int) -> str:
    return f"{amount / 1000:g} {resource}"
