"""The numbers of a queue under capacity: limits that follow from the queues and the cluster, and amounts that follow
from jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pumice.core.resources import Resource, share

if TYPE_CHECKING:
    from pumice.core.plugins.capacity.claims import ClaimQuota


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
