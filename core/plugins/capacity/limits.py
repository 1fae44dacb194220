"""What a queue may still take: admission of jobs, allocation of tasks, and the right to take from others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.plugins.capacity.tree import ROOT
from core.resources import Resource
from core.session.fit import TooLittle
from core.session.points.votes import Vote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.objects.pod import Task
    from core.objects.queue import Queue
    from core.plugins.capacity.attributes import CapacityAttributes
    from core.plugins.capacity.claims import DeviceQuotas
    from core.plugins.capacity.ledger import Ledger
    from core.session.session import Session
    from core.state.jobs import Job


class CapacityLimits:
    """JobEnqueueable, JobEnqueued, Allocatable, Preemptive.

    `levels`: how many ancestors may lend their deserved to Preemptive (ancestorReclaimLevel). `charge_on_admission`
    (fix): a job counts as inqueue when it was admitted, not when this plugin voted for it.
    """

    def __init__(
        self, session: Session, ledger: Ledger, claims: DeviceQuotas, *, levels: int, charge_on_admission: bool
    ) -> None:
        self._session = session
        self._ledger = ledger
        self._claims = claims
        self._levels = levels
        self._charge_on_admission = charge_on_admission

    def job_enqueueable(self, job: Job) -> Vote:
        """min + allocated + inqueue - elastic within the real capability, on every level, and the queue open."""
        queue = self._session.queue_of(job)
        if not self._ledger.ready or not queue.is_open:
            return Vote.REJECT
        own = self._ledger.of(queue.name)
        if job.pod_group.min_resources is None and not self._claims.counts(own, job):
            return Vote.PERMIT
        if not all(self._admits(attributes, job) for attributes in self._ledger.line(queue.name)):
            return Vote.REJECT
        if not self._charge_on_admission:
            self._charge(job)
        return Vote.PERMIT

    def _admits(self, attributes: CapacityAttributes, job: Job) -> bool:
        minimum = job.pod_group.min_resources or Resource()
        future = minimum.clone().add(attributes.allocated).add(attributes.inqueue)
        future.sub_without_assert(attributes.elastic)
        fits, short = future.less_equal_with_dimension_and_resources_name(attributes.limits.real_capability, minimum)
        if not fits:
            most = attributes.limits
            self._session.fit.too_little[job.row] = TooLittle(future, most.real_capability, most.name)
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


def fits(attributes: CapacityAttributes, allocated: Resource, task: Task) -> bool:
    """allocated + the task's request within the real capability, on what the task asks for."""
    request = task.template.request
    future = allocated.clone().add(request)
    holds, _ = future.less_equal_with_dimension_and_resources_name(attributes.limits.real_capability, request)
    return holds
