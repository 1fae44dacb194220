"""Which queue goes first, and whose tasks are victims first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pumice.core.objects.queue import Queue
    from pumice.core.plugins.capacity.attributes import CapacityAttributes
    from pumice.core.plugins.capacity.ledger import Ledger


class QueueOrders:
    """QueueOrder of flat queues and of a tree, VictimQueueOrder of a tree.

    `best_effort_last` (fix): queues that deserve nothing come after all others, instead of standing at share 1 among
    them.
    """

    def __init__(self, ledger: Ledger, *, best_effort_last: bool) -> None:
        self._ledger = ledger
        self._best_effort_last = best_effort_last

    def flat(self, left: Queue, right: Queue) -> int:
        """Higher priority first, then the smaller share, then who deserves something."""
        if left.priority != right.priority:
            return right.priority - left.priority
        return self._by_share(self._ledger.of(left.name), self._ledger.of(right.name))

    def tree(self, left: Queue, right: Queue) -> int:
        """Higher priority first; leaves before others; two leaves by their ancestors below the deepest common one."""
        if left.priority != right.priority:
            return right.priority - left.priority
        a, b = self._ledger.of(left.name), self._ledger.of(right.name)
        if a.limits.leaf != b.limits.leaf:
            return -1 if a.limits.leaf else 1
        if a.limits.leaf:
            below = common_level(a, b) + 1
            a, b = self._at(a, below), self._at(b, below)
        return self._by_share(a, b)

    def _at(self, attributes: CapacityAttributes, level: int) -> CapacityAttributes:
        ancestors = attributes.limits.ancestors
        return self._ledger.of(ancestors[level]) if level < len(ancestors) else attributes

    def _by_share(self, left: CapacityAttributes, right: CapacityAttributes) -> int:
        a, b = left.limits.deserved.is_empty(), right.limits.deserved.is_empty()
        if left.share == right.share or (self._best_effort_last and a != b):
            return a - b
        return -1 if left.share < right.share else 1

    def victims(self, left: Queue, right: Queue, preemptor: Queue) -> int:
        """The queue that shares a deeper ancestor with the preemptor is robbed first."""
        own = self._ledger.of(preemptor.name)
        return common_level(self._ledger.of(right.name), own) - common_level(self._ledger.of(left.name), own)


def common_level(left: CapacityAttributes, right: CapacityAttributes) -> int:
    """How deep the two have the same ancestors; 0 also where they share none."""
    level = 0
    for index, (a, b) in enumerate(zip(left.limits.ancestors, right.limits.ancestors, strict=False)):
        if a != b:
            break
        level = index
    return level
