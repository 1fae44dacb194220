# SPDX-License-Identifier: Apache-2.0
"""The tree of queues: the entitlement, the allocated, borrowed and pending amounts of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pumice.core.messages.queue_tables import LIMITS, Amounts, borrowed, gauged, told
from pumice.questions.adviser.reasons import WaitCode
from pumice.questions.explain.room_left import amounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.config.schema import SchedulerConfig
    from pumice.core.objects.queue import Queue
    from pumice.core.resources import Resource
    from pumice.core.session.session import Session
    from pumice.questions.adviser.waiting_jobs import WaitingJobs

# --- Weights
# Proportion divides by weight what pods ask for that exist (proportion.go, OnSessionOpen: deserved is at most the
# request), and the pods of a Job exist once it is admitted. So a queue whose jobs all wait for admission asks for
# nothing, and a queue of more weight may wait longer than one of less: Volcano v1.15.1 does so, too.

UNADMITTED: Final = (WaitCode.OVERCOMMIT, WaitCode.NOT_ADMITTED, WaitCode.QUEUE_CAPABILITY)


def weights_remark(config: SchedulerConfig, weights: Mapping[str, int], waiting_jobs: WaitingJobs) -> str:
    """Return a sentence on jobs that wait for admission though the weights of queues differ; "" without one. `weights`:
    by queue.
    """
    option = config.plugin("proportion")
    if option is None or not option.is_enabled("QueueOrder") or "enqueue" not in config.actions:
        return ""
    outside = [job for job in waiting_jobs.waiting if job.phase in ("", "Pending") and job.wait.code in UNADMITTED]
    queues = sorted({job.queue for job in outside})
    if not queues or len({weights.get(queue, 1) for queue in weights}) < 2:
        return ""
    count = f"{len(outside)} job{'' if len(outside) == 1 else 's'}"
    return (
        f"{count} of {', '.join(f'{queue} (weight {weights.get(queue, 1)})' for queue in queues)} wait for admission: "
        "the weights of queues divide only what pods ask for that exist, and those of a Job exist once it is admitted, "
        "so that a queue of more weight may wait longer, as in Volcano; without action enqueue they count for all jobs"
    )


@dataclass(slots=True)
class QueueStanding:
    """Amounts by resource: cpu in cores, memory in bytes, all others in pieces. `borrowed`: allocated beyond deserved;
    `pending`: the requests of its pods without a node; `capability`: the most it may have, as far as that is limited.
    `share`: as the queue's plugin computes it, null where none does. All as the cycle opened.
    """

    parent: str
    state: str
    weight: int
    priority: int
    share: float | None = None
    guarantee: Amounts = field(default_factory=dict[str, float])
    deserved: Amounts = field(default_factory=dict[str, float])
    capability: Amounts = field(default_factory=dict[str, float])
    allocated: Amounts = field(default_factory=dict[str, float])
    borrowed: Amounts = field(default_factory=dict[str, float])
    pending: Amounts = field(default_factory=dict[str, float])
    jobs_waiting: int = 0
    pods_waiting: int = 0


def standings_of(session: Session, gauges: Mapping[str, Mapping[str, float]]) -> dict[str, QueueStanding]:
    """Return every queue of a session by name, in name order. Waiting jobs are not counted yet."""
    by_queue, columns = session.jobs.by_queue, session.snapshot.jobs
    pending: list[list[float]] = by_queue.sums(columns.pending).T.tolist()
    found: dict[str, QueueStanding] = {}
    for queue, line in zip(session.snapshot.queues, pending, strict=True):
        standing = found[queue.name] = _standing(queue, gauges.get(queue.name, {}))
        named = zip(session.dims.names, line, strict=False)
        standing.pending = {name: told(name, value) for name, value in named if value}
    if not any("allocated_milli_cpu" in figures for figures in gauges.values()):
        _count_allocated(session, found)
    return found


def _standing(queue: Queue, gauges: Mapping[str, float]) -> QueueStanding:
    standing = QueueStanding(queue.parent, queue.state, queue.weight, queue.priority, gauges.get("share"))
    said = {"guarantee": queue.guarantee, "deserved": queue.deserved, "capability": queue.capability}
    for name, gauge in LIMITS.items():
        setattr(standing, name, gauged(gauges, gauge) or _amounts(said[name]))
    standing.allocated = gauged(gauges, "allocated")
    if gauged(gauges, "deserved"):
        standing.borrowed = borrowed(standing.allocated, standing.deserved)
    return standing


def _count_allocated(session: Session, standings: Mapping[str, QueueStanding]) -> None:
    """Add the allocated amounts of queues, if no plugin counts them."""
    lines: list[list[float]] = session.jobs.by_queue.sums(session.snapshot.jobs.allocated).T.tolist()
    for standing, line in zip(standings.values(), lines, strict=True):
        standing.allocated = {
            name: told(name, value) for name, value in zip(session.dims.names, line, strict=False) if value
        }


def _amounts(resource: Resource | None) -> Amounts:
    listed = {} if resource is None else amounts(resource)
    return {name: told(name, value) for name, value in listed.items() if value}


def lineage(standings: Mapping[str, QueueStanding], name: str) -> set[str]:
    """Return a queue and all below it."""
    found = {name}
    while more := {each for each, one in standings.items() if one.parent in found} - found:
        found |= more
    return found


def in_tree_order(standings: Mapping[str, QueueStanding]) -> list[tuple[int, str]]:
    """Return depth and name, parents before children, names in order."""
    children: dict[str, list[str]] = {}
    for name, standing in standings.items():
        above = standing.parent if standing.parent in standings and standing.parent != name else ""
        children.setdefault(above, []).append(name)
    found: list[tuple[int, str]] = []
    left = [(0, name) for name in reversed(children.get("", []))]
    while left:
        depth, name = left.pop()
        found.append((depth, name))
        left += [(depth + 1, each) for each in reversed(children.get(name, []))]
    return found


def count_waiting(standings: Mapping[str, QueueStanding], waiting: Iterable[tuple[str, int]]) -> None:
    """Count waiting jobs, each by its queue and its pods without a node."""
    jobs, pods = Counter[str](), Counter[str]()
    for queue, count in waiting:
        jobs[queue] += 1
        pods[queue] += count
    for name, standing in standings.items():
        standing.jobs_waiting, standing.pods_waiting = jobs[name], pods[name]
