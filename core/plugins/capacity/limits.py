"""What a queue may still take: admission of jobs, allocation of tasks, and the right to take from others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.core.plugins.capacity.tree import ROOT
from pumice.core.resources import Resource, exceeded_part, higher
from pumice.core.session.fit import TooLittle, queue_parts
from pumice.core.session.points.votes import Vote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.plugins.capacity.attributes import CapacityAttributes
    from pumice.core.plugins.capacity.claims import DeviceQuotas
    from pumice.core.plugins.capacity.ledger import Ledger
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job


COUNTS_LENT: Final = "enqueue-counts-what-is-lent"
RECLAIMING: Final = frozenset({"reclaim", "gangreclaim"})


class CapacityLimits:
    """JobEnqueueable, JobEnqueued, Allocatable, Preemptive.

    `levels`: how many ancestors may lend their deserved to Preemptive (ancestorReclaimLevel). `charge_on_admission`
    (fix): a job counts as inqueue when it was admitted, not when this plugin voted for it.

    Volcano counts all that is allocated against a queue's ancestors: a job whose queue is below its due is not admitted
    to a full cluster, and reclaim, which passes over jobs that are not admitted, never makes room for it. Under the fix
    COUNTS_LENT what reclaim could take does not count.
    """

    def __init__(
        self, session: Session, ledger: Ledger, claims: DeviceQuotas, *, levels: int, charge_on_admission: bool
    ) -> None:
        self._session = session
        self._ledger = ledger
        self._claims = claims
        self._levels = levels
        self._charge_on_admission = charge_on_admission
        actions, fixes = session.config.actions, session.config.pumice.fix
        self._counts_lent = COUNTS_LENT in fixes and ledger.hierarchical and not RECLAIMING.isdisjoint(actions)

    def job_enqueueable(self, job: Job) -> Vote:
        """min + allocated + inqueue - elastic within the real capability, on every level, and the queue open."""
        queue = self._session.queue_of(job)
        if not self._ledger.ready or not queue.is_open:
            return Vote.REJECT
        own = self._ledger.of(queue.name)
        if job.pod_group.min_resources is None and not self._claims.counts(own, job):
            return Vote.PERMIT
        lent = self._counts_lent and self._may_reclaim(own, job)
        if not all(self._admits(attributes, job, lent=lent) for attributes in self._ledger.line(queue.name)):
            return Vote.REJECT
        if not self._charge_on_admission:
            self._charge(job)
        return Vote.PERMIT

    def _may_reclaim(self, own: CapacityAttributes, job: Job) -> bool:
        """Return whether reclaim would look for room for the job, with what is admitted to its queue already."""
        minimum = job.pod_group.min_resources or Resource()
        total = minimum.clone().add(own.inqueue)
        return any(_below_deserved(attributes, total) for attributes in [own, *self._lenders(own)])

    def _lent(self, attributes: CapacityAttributes, borrower: str) -> Resource:
        """Return what the other queues below this one hold above what they deserve, or can give back anyhow."""
        total = Resource()
        for name, limits in self._ledger.limits.items():
            if name != borrower and limits.leaf and attributes.limits.name in limits.ancestors:
                other, queue = self._ledger.of(name), self._session.queues[name]
                gives = queue.reclaimable and _above_deserved(other)
                above = exceeded_part(other.allocated, limits.deserved) if gives else Resource()
                total.add(higher(above, other.elastic))
        return total

    def _given_back(self, attributes: CapacityAttributes, job: Job, *, lent: bool) -> Resource:
        own = job.pod_group.queue
        if not lent or attributes.limits.name == own:
            return attributes.elastic
        return self._lent(attributes, own).add(self._ledger.of(own).elastic)

    def _admits(self, attributes: CapacityAttributes, job: Job, *, lent: bool) -> bool:
        minimum = job.pod_group.min_resources or Resource()
        future = minimum.clone().add(attributes.allocated).add(attributes.inqueue)
        given_back = self._given_back(attributes, job, lent=lent)
        future.sub_without_assert(given_back)
        fits, short = future.less_equal_with_dimension_and_resources_name(attributes.limits.real_capability, minimum)
        if not fits:
            most = attributes.limits
            parts = queue_parts(attributes.allocated, attributes.inqueue, given_back)
            self._session.fit.too_little[job.row] = TooLittle(future, most.real_capability, most.name, parts)
            self._session.fit.remark(job, "queue resource quota insufficient", "insufficient", short)
        return fits and self._claims.admit(attributes, job)

    def job_enqueued(self, job: Job) -> None:
        """Charge an admitted job (only under the fix)."""
        if self._ledger.ready and (job.pod_group.min_resources is not None or self._claims.active):
            self._charge(job)

    def _charge(self, job: Job) -> None:
        deducted = self._session.jobs.without_gated(job, job.pod_group.min_resources or Resource())
        for attributes in self._ledger.line(job.pod_group.queue):
            attributes.inqueue.add(deducted)
        self._claims.charge(self._ledger.line(job.pod_group.queue), job)

    def allocatable(self, queue: Queue, task: Task) -> bool:
        """The queue is open and a leaf, and the task fits into the real capability on every level."""
        if not queue.is_open or not self._ledger.ready or not self._ledger.of(queue.name).limits.leaf:
            return False
        return all(
            fits(attributes, attributes.allocated, task) and self._claims.fit(attributes.claims, task)
            for attributes in self._ledger.line(queue.name)
        )

    def preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        """The tasks stay within the real capability, and within deserved in at least one dimension they ask for."""
        if not self._ledger.ready or not queue.is_open:
            return False
        total = Resource()
        for task in tasks:
            total.add(task.template.request)
        own = self._ledger.of(queue.name)
        future = own.allocated.clone().add(total)
        if not future.less_equal_with_dimension_and_resources_name(own.limits.real_capability, total)[0]:
            return False
        return any(_below_deserved(attributes, total) for attributes in [own, *self._lenders(own)])

    def _lenders(self, own: CapacityAttributes) -> list[CapacityAttributes]:
        if not self._ledger.hierarchical:
            return []
        nearest = own.limits.ancestors[::-1][: self._levels]
        return [self._ledger.of(name) for name in nearest if name != ROOT]


def _below_deserved(attributes: CapacityAttributes, total: Resource) -> bool:
    future = attributes.allocated.clone().add(total)
    holds, _ = future.less_equal_partly_with_dimension_zero_filtered(attributes.limits.deserved, total)
    return holds


def _above_deserved(attributes: CapacityAttributes) -> bool:
    deserved, allocated = attributes.limits.deserved, attributes.allocated
    return deserved.is_empty() or any(allocated.get(name) > deserved.get(name) for name in deserved.resource_names())


def fits(attributes: CapacityAttributes, allocated: Resource, task: Task) -> bool:
    """allocated + the task's request within the real capability, on what the task asks for."""
    request = task.template.request
    future = allocated.clone().add(request)
    holds, _ = future.less_equal_with_dimension_and_resources_name(attributes.limits.real_capability, request)
    return holds
