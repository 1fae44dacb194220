"""Whose tasks may be taken for another queue: those of queues above what they deserve, never below a guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.plugins.capacity.tree import ROOT
from pumice.core.resources import PODS, ZERO, intersection
from pumice.core.session.points.votes import Vote
from pumice.core.session.victim_order import victim_queue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.plugins.capacity.attributes import CapacityAttributes
    from pumice.core.plugins.capacity.ledger import Ledger
    from pumice.core.resources import Resource
    from pumice.core.session.points.victims import GangEvictor
    from pumice.core.session.session import Session

Answer = tuple[list["Task"], Vote]


class Running:
    """What queues would have left while victims are chosen one after the other."""

    def __init__(self) -> None:
        self._allocated: dict[str, Resource] = {}

    def of(self, attributes: CapacityAttributes) -> Resource:
        """What is left of the queue's allocated so far."""
        name = attributes.limits.name
        if name not in self._allocated:
            self._allocated[name] = attributes.allocated.clone()
        return self._allocated[name]

    def take(self, queues: Sequence[CapacityAttributes], task: Task) -> None:
        """The task is a victim: these queues have less."""
        for attributes in queues:
            self.of(attributes).sub_without_assert(task.template.request)


class CapacityReclaim:
    """Reclaimable and UnifiedEvictable.

    `levels` ancestors must be above what they deserve as well (ancestorReclaimLevel).
    """

    def __init__(self, session: Session, ledger: Ledger, *, levels: int) -> None:
        self._session = session
        self._ledger = ledger
        self._levels = levels if ledger.hierarchical else 0

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> Answer:
        """Victims in victim order: they free something the reclaimer asks for, of a queue above its due, guarantees
        kept.
        """
        job = self._session.job_of(reclaimer)
        if not self._ledger.ready or job is None:
            return [], Vote.REJECT
        own, left = self._ledger.of(job.pod_group.queue), Running()
        queue = victim_queue(self._session, candidates, reclaimer)
        victims: list[Task] = []
        while len(queue):
            victim = queue.pop()
            attributes = self._queue_of(victim)
            if attributes is None or not _shares_dimension(victim, reclaimer):
                continue
            charged = self._charged(own, reclaimer, attributes, victim, left)
            if charged:
                left.take(charged, victim)
                victims.append(victim)
        return victims, Vote.PERMIT

    def evictable(self, context: GangEvictor, candidates: Sequence[Task]) -> Answer:
        """For gangs: preemption within the queue may take anybody; reclaim asks for guarantee and deserved of the leaf
        only.
        """
        if context.kind == "gangpreempt":
            return list(candidates), Vote.PERMIT
        if not self._ledger.ready:
            return [], Vote.REJECT
        left = Running()
        victims: list[Task] = []
        for victim in candidates:
            attributes = self._queue_of(victim)
            if attributes is None or not keeps_guarantee(attributes, left.of(attributes), victim):
                continue
            if _is_free(attributes, victim) or _exceeds(attributes, left.of(attributes), victim):
                left.take([attributes], victim)
                victims.append(victim)
        return victims, Vote.PERMIT

    def _queue_of(self, task: Task) -> CapacityAttributes | None:
        job = self._session.job_of(task)
        return None if job is None else self._ledger.of(job.pod_group.queue)

    def _charged(
        self, own: CapacityAttributes, reclaimer: Task, attributes: CapacityAttributes, victim: Task, left: Running
    ) -> list[CapacityAttributes]:
        """The queues that have less when the victim goes; none when it may not be taken."""
        if not keeps_guarantee(attributes, left.of(attributes), victim):
            return []
        if _is_free(attributes, victim):
            # Nobody deserves what is asked for under the shared ancestor: taking it would only turn the tables.
            if self._share_ancestor(own, attributes) and _is_free(own, reclaimer):
                return []
        elif not _exceeds(attributes, left.of(attributes), victim):
            return []
        ancestors = self._ancestors_to_check(own, attributes)
        for ancestor in ancestors:
            if not _is_free(ancestor, victim) and not _exceeds(ancestor, left.of(ancestor), victim):
                return []
        return [attributes, *ancestors]

    def _ancestors_to_check(self, own: CapacityAttributes, attributes: CapacityAttributes) -> list[CapacityAttributes]:
        """Ancestors up to the level, nearest first, without the root and without those the reclaimer has at the same
        level.
        """
        mine, theirs = self._nearest(own), self._nearest(attributes)
        return [
            self._ledger.of(name)
            for level, name in enumerate(theirs)
            if name != ROOT and not (level < len(mine) and mine[level] == name)
        ]

    def _nearest(self, attributes: CapacityAttributes) -> list[str]:
        return attributes.limits.ancestors[::-1][: self._levels]

    def _share_ancestor(self, left: CapacityAttributes, right: CapacityAttributes) -> bool:
        return bool({*self._nearest(left)} & {*self._nearest(right)} - {ROOT})


def _shares_dimension(victim: Task, reclaimer: Task) -> bool:
    return any(name != PODS for name in intersection(victim.template.request, reclaimer.template.request))


def keeps_guarantee(attributes: CapacityAttributes, allocated: Resource, victim: Task) -> bool:
    """Whether the queue still has its guarantee without the victim (tolerant)."""
    rest = allocated.clone().sub_without_assert(victim.template.request)
    return attributes.limits.guarantee.less_equal(rest, ZERO)


def _is_free(attributes: CapacityAttributes, task: Task) -> bool:
    """Whether the queue deserves nothing of what the task asks for."""
    return not intersection(task.template.request, attributes.limits.deserved)


def _exceeds(attributes: CapacityAttributes, allocated: Resource, victim: Task) -> bool:
    """Whether the queue has more than it deserves in a dimension that the victim asks for."""
    more, _ = allocated.greater_partly_with_relevant_dimensions(attributes.limits.deserved, victim.template.request)
    return more
