"""The plugin: queue order, limits and admission by deserved and capability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.core.plugins.proportion.attributes import Attributes
from pumice.core.plugins.proportion.simulate import ProportionSimulation
from pumice.core.resources import ZERO, Resource
from pumice.core.session.fit import TooLittle, queue_parts
from pumice.core.session.points.votes import Vote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.messages.queue_tables import QueueTables
    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.plugins.proportion.attributes import ProportionAttributes
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job


class Proportion:
    """No arguments. Queues without any job have no attributes and are never asked about."""

    name = "proportion"

    def __init__(self, arguments: dict[str, Any]) -> None:
        pass

    def on_session_open(self, session: Session) -> None:
        """Gather, fill, register."""
        self._session = session
        self.attributes = Attributes(session)
        self._of_task = session.jobs.of_task
        self._by_job: dict[int, ProportionAttributes] = {}  # by row; a job stays in its queue for a session
        session.tellers.queues.append(self)
        points = session.points
        points.queue_order.add(self.name, self.queue_order)
        points.reclaimable.add(self.name, self.reclaimable)
        points.overused.add(self.name, self.overused)
        points.allocatable.add(self.name, self.allocatable)
        points.preemptive.add(self.name, self.preemptive)
        points.job_enqueueable.add(self.name, self.job_enqueueable)
        self._charges_on_admission = "enqueue-charges-once" in session.config.pumice.fix
        if self._charges_on_admission:
            points.job_enqueued.add(self.name, self.job_enqueued)
        simulation = ProportionSimulation(session, self.attributes)
        points.simulate_add_task.add(self.name, simulation.add)
        points.simulate_remove_task.add(self.name, simulation.remove)
        points.simulate_allocatable.add(self.name, simulation.allocatable)
        session.points.handle(self._on_allocate, self._on_deallocate)

    def on_session_close(self, session: Session) -> None:
        """Nothing to write."""

    def queue_order(self, left: Queue, right: Queue) -> int:
        """Higher priority first, then the smaller share."""
        if left.priority != right.priority:
            return right.priority - left.priority
        a, b = self.attributes[left.name].share, self.attributes[right.name].share
        return (a > b) - (a < b)

    def overused(self, queue: Queue) -> bool:
        """deserved <= allocated in every dimension; a queue that deserves nothing is overused."""
        attributes = self.attributes[queue.name]
        return attributes.deserved.less_equal(attributes.allocated, ZERO)

    def allocatable(self, queue: Queue, task: Task) -> bool:
        """The queue is open, and with the task stays within deserved on what the task asks for."""
        return queue.is_open and self.attributes[queue.name].has_room_for(task.template.request)

    def preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        """The queue is open, and with all these tasks stays within deserved on what they ask for."""
        total = Resource()
        for task in tasks:
            total.add(task.template.request)
        return queue.is_open and self.attributes[queue.name].has_room_for(total)

    def job_enqueueable(self, job: Job) -> Vote:
        """minResources + allocated + inqueue - elastic within the real capability, and the queue open.

        A Permit charges at once
        (fix enqueue-charges-once: admission does).
        """
        queue = self._session.queue_of(job)
        if not queue.is_open:
            return Vote.REJECT
        minimum = job.pod_group.min_resources
        if minimum is None:
            return Vote.PERMIT
        attributes = self.attributes[queue.name]
        inqueue, elastic = self.attributes.promised_to(queue.name)
        future = minimum.clone().add(attributes.allocated).add(inqueue).sub_without_assert(elastic)
        fits, short = future.less_equal_with_dimension_and_resources_name(attributes.real_capability, minimum)
        if not fits:
            parts = queue_parts(attributes.allocated, inqueue, elastic)
            self._session.fit.too_little[job.row] = TooLittle(future, attributes.real_capability, queue.name, parts)
            self._session.fit.remark(job, "queue resource quota insufficient", "insufficient", short)
            return Vote.REJECT
        if not self._charges_on_admission:
            self.job_enqueued(job)
        return Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        """Charge a job with its minResources less what gated pods ask for."""
        minimum = job.pod_group.min_resources
        if minimum is not None:
            inqueue, _ = self.attributes.promised_to(job.pod_group.queue)
            inqueue.add(self._session.jobs.without_gated(job, minimum))

    def reclaimable(self, _: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """Tasks of queues above what they deserve, while they stay above."""
        allocations: dict[str, Resource] = {}
        victims: list[Task] = []
        for candidate in candidates:
            job = self._session.job_of(candidate)
            if job is None:
                continue
            attributes = self.attributes[job.pod_group.queue]
            if attributes.name not in allocations:
                allocations[attributes.name] = attributes.allocated.clone()
            allocated = allocations[attributes.name]
            if not allocated.less_equal(attributes.deserved, ZERO):
                allocated.sub_without_assert(candidate.template.request)
                victims.append(candidate)
        return victims, Vote.PERMIT

    def _find(self, task: Task) -> ProportionAttributes | None:
        job = self._session.job_of(task)
        if job is None:
            return None
        found = self._by_job[job.row] = self.attributes[job.pod_group.queue]
        return found

    def _on_allocate(self, task: Task, node: int) -> None:
        attributes = self._by_job.get(self._of_task[task.row]) or self._find(task)
        if attributes is not None:
            attributes.give(task.template.request)

    def _on_deallocate(self, task: Task, node: int) -> None:
        attributes = self._by_job.get(self._of_task[task.row]) or self._find(task)
        if attributes is not None:
            attributes.take(task.template.request)

    def gauges(self) -> QueueTables:
        """The numbers of each queue when the session opened."""
        return self.attributes.gauges()

    def amounts(self) -> QueueTables:
        """What Volcano has no metric for, when the session opened."""
        return self.attributes.amounts()

    def share_now(self, queue: str) -> float:
        """By which queues are ordered now."""
        return self.attributes[queue].share

    def held_now(self, queue: str) -> Resource:
        """What the queue holds now."""
        return self.attributes[queue].allocated

    def verdicts(self) -> QueueTables:
        """Which queues are overused as the session closes."""
        return self.attributes.overused()
