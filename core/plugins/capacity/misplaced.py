"""Queues and jobs that keep capacity from scheduling anything, in a sentence.

With a tree of queues Volcano gives up on all of them where a job is in a queue that has children, where a parent does
not exist, and where there is no root: it refuses every job and says so in its log only (capacity.go,
buildHierarchicalQueueAttrs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT: Final = "root"
NAMED: Final = 3
"""The number of jobs or queues that a sentence names."""


def tree_problem(parents: Mapping[str, str], jobs: Iterable[tuple[str, str]]) -> str:
    """Return what is wrong and what to do; "" where the tree can be used. `parents`: of each queue, "" for root;
    `jobs`: ("namespace/podgroup", its queue).
    """
    above = {name: parent or ROOT for name, parent in parents.items() if name != ROOT}
    if ROOT not in parents:
        return "capacity refuses every job: queue root does not exist; create it"
    orphans = [name for name, parent in sorted(above.items()) if parent not in parents]
    if orphans:
        said = f"queue {orphans[0]} names the parent {above[orphans[0]]}, which does not exist"
        return f"capacity refuses every job: {said}; create it, or change spec.parent of {_listed(orphans)}"
    misplaced = sorted((queue, job) for job, queue in jobs if queue in set(above.values()))
    if not misplaced:
        return ""
    queue, job = misplaced[0]
    leaves = leaves_below(parents, queue)
    where = f"to a queue below it ({_listed(leaves)})" if leaves else "to a queue without children"
    more = [other for _, other in misplaced[1:]]
    others = f", and so are {_listed(more)}" if more else ""
    return (
        f"capacity refuses every job while PodGroup {job} is in queue {queue}, which has child queues{others}: "
        f"move it {where}, or delete it"
    )


def leaves_below(parents: Mapping[str, str], queue: str) -> list[str]:
    """Return the queues without children below a queue, by name."""
    children: dict[str, list[str]] = {}
    for name, parent in sorted(parents.items()):
        if name != ROOT:
            children.setdefault(parent or ROOT, []).append(name)
    found, seen, waiting = list[str](), {queue}, list(children.get(queue, ()))
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            found += [] if children.get(name) else [name]
            waiting += children.get(name, ())
    return sorted(found)


def _listed(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
