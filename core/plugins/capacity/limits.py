# SPDX-License-Identifier: Apache-2.0
"""Limits of all queues, flat or in a tree, kept from session to session until a queue or a node changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pumice.core.resources import INFINITY, LARGEST, Resource, exceeded_part, higher, share
from pumice.core.state.derived import derived
from pumice.core.state.dimensions import FloatArray
from pumice.core.state.sources import QUEUE_LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.core.plugins.capacity.claims import ClaimQuota
    from pumice.core.state.dimensions import Dimensions
    from pumice.core.state.sources import LimitedQueue, QueueLimits


# --- The numbers of a queue under capacity


@dataclass(slots=True, eq=False)
class FixedAttributes:
    """One queue's fixed numbers. They do not change within a session, and are kept until a queue or a node changes.

    `real_capability`: the capability cut to what others' guarantees leave. `ancestors`: from the root down, `leaf`
    without children; a flat queue is a leaf without ancestors. `is_best_effort`: it deserves nothing.
    """

    name: str
    guarantee: Resource
    capability: Resource
    real_capability: Resource
    deserved: Resource
    ancestors: list[str] = field(default_factory=list[str])
    children: dict[str, FixedAttributes] = field(default_factory=dict[str, "FixedAttributes"])

    @property
    def leaf(self) -> bool:
        """Return whether jobs may live in the queue."""
        return not self.children


@dataclass(slots=True, eq=False)
class CapacityAttributes:
    """One queue in one session: its limits, and the allocated, requested, inqueue and elastic amounts of its jobs
    (children included).
    """

    limits: FixedAttributes
    allocated: Resource
    request: Resource
    inqueue: Resource
    elastic: Resource
    share: float = 0.0
    claims: ClaimQuota | None = None

    def update_share(self) -> None:
        """Update the share after a change of `allocated`."""
        self.share = share_of(self.allocated, self.limits.deserved)


def share_of(allocated: Resource, deserved: Resource) -> float:
    """Return the largest allocated / deserved; exactly 1 for a queue that deserves nothing, so that it comes after
    those below their deserved amount.
    """
    if deserved.is_empty():
        return 1.0
    return max(0.0, *(share(allocated.get(name), deserved.get(name)) for name in deserved.resource_names()))


# --- Queues and jobs that keep capacity from scheduling
# With a tree of queues Volcano gives up on all of them where a job is in a queue that has children, where a parent
# does not exist, and without a root: it refuses every job and says so in its log only (capacity.go,
# buildHierarchicalQueueAttrs).

NAMED: Final = 3
"""The number of jobs or queues that a sentence names."""


def tree_problem(parents: Mapping[str, str], jobs: Iterable[tuple[str, str]]) -> str:
    """Return the problem of the tree of queues and its remedy; "" where the tree can be used. `parents`: of each queue,
    "" for root; `jobs`: ("namespace/podgroup", its queue).
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
    # Parents may form a ring, which the walk would never leave.
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


# --- The tree of queues
# Source: Volcano `capacity.buildHierarchicalQueueAttrs`, `checkHierarchicalQueue`.

ROOT: Final = "root"
NO_LIMIT = 9.223372036854775807e18  # MaxInt64, Volcano's "as much as you like" for scalars


def tree_limits(queues: Mapping[str, LimitedQueue], total: Resource) -> dict[str, FixedAttributes] | None:
    """Return the limits of every queue by name; None when the tree cannot be used: a parent or the root is missing."""
    limits: dict[str, FixedAttributes] = {}
    for name in queues:
        if name not in limits and not _attach(name, queues, limits):
            return None
    root = limits.get(ROOT)
    if root is None:
        return None
    # The root limits nothing unless its spec does: users may ask for more than the cluster has at present
    # (capacity.go).
    if root.capability.is_empty():
        root.capability = Resource.infinite()
        for name in total.scalars or ():
            root.capability.set_scalar(name, NO_LIMIT)
    root.real_capability = root.capability
    _distribute(root)
    return limits


def _bare(queue: LimitedQueue) -> FixedAttributes:
    guarantee, capability = queue.guarantee or Resource(), queue.capability or Resource()
    return FixedAttributes(
        queue.name, guarantee.clone(), capability.clone(), Resource(), (queue.deserved or Resource()).clone()
    )


def _attach(name: str, queues: Mapping[str, LimitedQueue], limits: dict[str, FixedAttributes]) -> bool:
    """Attach the queue and its parents to the tree, parents first. False when a parent is missing.

    A queue whose parents form a ring hangs in the air, as in Volcano: it is reached from no root, so its real
    capability stays empty.
    """
    limits[name] = _bare(queues[name])
    path = [name]
    while path[-1] != ROOT:
        parent = queues[path[-1]].parent or ROOT
        if parent not in queues:
            return False
        path.append(parent)
        if parent in limits:
            break
        limits[parent] = _bare(queues[parent])
    for parent, child in zip(reversed(path), reversed(path[:-1]), strict=False):
        limits[parent].children[child] = limits[child]
        limits[child].ancestors = [*limits[parent].ancestors, parent]
    return True


def _distribute(root: FixedAttributes) -> None:
    """Distribute from the root down: inherit the resources that a capability leaves open, and cut each real capability
    to what the siblings' guarantees leave.
    """
    stack = [root]
    while stack:
        parent = stack.pop()
        guaranteed, deserved = Resource(), Resource()
        for child in parent.children.values():
            child.deserved = higher(child.deserved, child.guarantee)
            deserved.add(child.deserved)
            guaranteed.add(child.guarantee)
            _inherit(child.capability, parent.capability)
        # The root's own spec does not count here: it has what its children have together.
        if parent.name == ROOT:
            parent.guarantee, parent.deserved = guaranteed, deserved
        for child in parent.children.values():
            # The guarantees of all children come off, the child's own among them, which is then added back.
            child.real_capability = exceeded_part(parent.real_capability, guaranteed).add(child.guarantee)
            child.real_capability.min_dimension_resource(child.capability, INFINITY)
        stack.extend(parent.children.values())


def _inherit(own: Resource, parent: Resource) -> None:
    # What a capability does not set, or sets to 0, it has from its parent (capacity.go).
    if own.milli_cpu <= 0:
        own.milli_cpu = parent.milli_cpu
    if own.memory <= 0:
        own.memory = parent.memory
    if parent.scalars is not None:
        own.scalars = {**parent.scalars, **(own.scalars or {})}


# --- Limits of queues that stand side by side
# Source: Volcano `capacity.buildQueueAttrs`.


def free_of_guarantees(total: Resource, queues: Iterable[LimitedQueue]) -> Resource:
    """Return what the cluster has beyond the sum of all guarantees."""
    guaranteed = Resource()
    for queue in queues:
        if queue.guarantee is not None:
            guaranteed.add(queue.guarantee)
    return exceeded_part(total, guaranteed)


def flat_limits(queue: LimitedQueue, free: Resource) -> FixedAttributes:
    """Return one queue's limits; `free` from :func:`free_of_guarantees`.

    A capability without cpu or memory does not limit it.
    """
    guarantee = queue.guarantee.clone() if queue.guarantee else Resource()
    real, capability = free.clone().add(guarantee), Resource()
    if queue.capability is not None:
        capability = queue.capability.clone()
        capability.milli_cpu = capability.milli_cpu if capability.milli_cpu > 0 else LARGEST
        capability.memory = capability.memory if capability.memory > 0 else LARGEST
        real.min_dimension_resource(capability, INFINITY)
    deserved = queue.deserved.clone() if queue.deserved else Resource()
    deserved.min_dimension_resource(real, INFINITY)
    return FixedAttributes(queue.name, guarantee, capability, real, higher(deserved, guarantee))


def idle_limits(queue: LimitedQueue, free: Resource) -> tuple[Resource, Resource, Resource]:
    """Return (deserved, capability, real capability) as a queue without jobs shows them, straight from its spec. Here a
    capability without cpu limits cpu, as Volcano shows it.
    """
    real = free.clone().add(queue.guarantee or Resource())
    if queue.capability is not None:
        real.min_dimension_resource(queue.capability, INFINITY)
    return queue.deserved or Resource(), queue.capability or Resource(), real


BoolArray = npt.NDArray[np.bool_]


class Columns(NamedTuple):
    """Amounts of queues. `amounts` float64, `named` bool (scalars only), both [dimension, queue row]."""

    amounts: FloatArray
    named: BoolArray


class IdleLimits(NamedTuple):
    """The limits that a queue shows while it has no job; `limited` bool [queue row]: it has a capability."""

    deserved: Columns
    capability: Columns
    real: Columns
    limited: BoolArray


@dataclass(slots=True, eq=False)
class KeptLimits:
    """The limits in a session. `limits` by queue; None when the tree cannot be used, and then the columns are empty.

    `best_effort` bool [queue row]: deserves nothing. `idle`: None in a tree.
    """

    limits: dict[str, FixedAttributes] | None
    guarantee: Columns
    deserved: Columns
    capability: Columns
    real: Columns
    best_effort: BoolArray
    idle: IdleLimits | None


@derived(QUEUE_LIMITS)
def kept_limits(known: QueueLimits, hierarchical: bool) -> KeptLimits:
    """Return the limits of the queues."""
    queues, dims, shown = known.queues, known.dimensions, list["tuple[Resource, Resource, Resource]"]()
    if hierarchical:
        limits = tree_limits({queue.name: queue for queue in queues}, known.total)
    else:
        free = free_of_guarantees(known.total, queues)
        limits = {queue.name: flat_limits(queue, free) for queue in queues}
        shown = [idle_limits(queue, free) for queue in queues]
    rows = [] if limits is None else [limits[queue.name] for queue in queues]
    return KeptLimits(
        limits,
        guarantee=_columns([one.guarantee for one in rows], dims),
        deserved=_columns([one.deserved for one in rows], dims),
        capability=_columns([one.capability for one in rows], dims),
        real=_columns([one.real_capability for one in rows], dims),
        best_effort=np.array([one.deserved.is_empty() for one in rows], dtype=np.bool_),
        idle=None if hierarchical else _idle(queues, shown, dims),
    )


def _idle(
    queues: Sequence[LimitedQueue], shown: list[tuple[Resource, Resource, Resource]], dims: Dimensions
) -> IdleLimits:
    deserved, capability, real = (_columns([of_queue[i] for of_queue in shown], dims) for i in range(3))
    limited = np.array([queue.capability is not None for queue in queues], dtype=np.bool_)
    return IdleLimits(deserved, capability, real, limited)


def _columns(resources: Iterable[Resource], dims: Dimensions) -> Columns:
    items = [dims.items(resource) for resource in resources]
    amounts = np.zeros((len(dims), len(items)))
    named = np.zeros(amounts.shape, dtype=np.bool_)
    for row, of_queue in enumerate(items):
        for dimension, value in of_queue:
            amounts[dimension, row] = value
            named[dimension, row] = True
    return Columns(amounts, named)
