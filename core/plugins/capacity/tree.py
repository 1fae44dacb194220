"""The tree of queues and the limits in it. Source: Volcano `capacity.buildHierarchicalQueueAttrs`,
`checkHierarchicalQueue`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.plugins.capacity.attributes import FixedAttributes
from pumice.core.resources import INFINITY, Resource, exceeded_part, higher

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.state.sources import LimitedQueue

ROOT = "root"
NO_LIMIT = 9.223372036854775807e18  # MaxInt64, Volcano's "as much as you like" for scalars


def tree_limits(queues: Mapping[str, LimitedQueue], total: Resource) -> dict[str, FixedAttributes] | None:
    """Limits of every queue by name; None when the tree cannot be used: a parent is missing, or there is no root."""
    limits: dict[str, FixedAttributes] = {}
    for name in queues:
        if name not in limits and not _attach(name, queues, limits):
            return None
    root = limits.get(ROOT)
    if root is None:
        return None
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
    """Hang the queue and its parents into the tree, parents first. False: a parent is missing.

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
    """From the root down: inherit what a capability leaves open, and cut each real capability to what the siblings'
    guarantees leave.
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
        if parent.name == ROOT:
            parent.guarantee, parent.deserved = guaranteed, deserved
        for child in parent.children.values():
            child.real_capability = exceeded_part(parent.real_capability, guaranteed).add(child.guarantee)
            child.real_capability.min_dimension_resource(child.capability, INFINITY)
        stack.extend(parent.children.values())


def _inherit(own: Resource, parent: Resource) -> None:
    if own.milli_cpu <= 0:
        own.milli_cpu = parent.milli_cpu
    if own.memory <= 0:
        own.memory = parent.memory
    if parent.scalars is not None:
        own.scalars = {**parent.scalars, **(own.scalars or {})}
