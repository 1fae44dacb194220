"""The plugin: arguments, registration, and keeping the numbers up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.config.arguments import Arguments
from pumice.core.plugins.capacity.claims import DeviceQuotas, quota_of
from pumice.core.plugins.capacity.gauges import amounts, gauges, overused
from pumice.core.plugins.capacity.ledger import Ledger
from pumice.core.plugins.capacity.limits import CapacityLimits
from pumice.core.plugins.capacity.order import QueueOrders
from pumice.core.plugins.capacity.reclaim import CapacityReclaim
from pumice.core.plugins.capacity.simulate import CapacitySimulation

if TYPE_CHECKING:
    from pumice.core.messages.queue_tables import QueueTables
    from pumice.core.objects.pod import Task
    from pumice.core.resources import Resource
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

LEVEL: Final = "ancestorReclaimLevel"
COUNT_DEVICES: Final = "capacity.DynamicResourceAllocationEnable"
SUM_CAPACITIES: Final = "capacity.DRAConsumableCapacityEnable"


class Capacity:
    """Arguments: `ancestorReclaimLevel` (int, 0; below 0: 0), `capacity.DynamicResourceAllocationEnable` (bool, true)
    and `capacity.DRAConsumableCapacityEnable` (bool, false). The flag enableHierarchy makes a tree of the queues.
    """

    name = "capacity"

    def __init__(self, arguments: dict[str, Any]) -> None:
        given = Arguments(self.name, arguments)
        self._levels = max(given.get_int(LEVEL, 0), 0)
        self._count_devices = given.get_bool(COUNT_DEVICES, default=True)
        self._sum_capacities = given.get_bool(SUM_CAPACITIES, default=False)

    def on_session_open(self, session: Session) -> None:
        """Gather and register."""
        option, fixes = session.config.plugin(self.name), session.config.pumice.fix
        self._session = session
        self._fresh_ancestors = "capacity-ancestor-shares" in fixes
        self.ledger = Ledger(session, hierarchical=option is not None and option.is_enabled("Hierarchy"))
        if not self.ledger.ready:
            session.fit.obstacles[self.name] = self.ledger.problem
        session.tellers.queues.append(self)
        self._claims = DeviceQuotas(session, enabled=self._count_devices, capacities=self._sum_capacities)
        self._count_claims()
        self._register_limits(session, charge_on_admission="enqueue-charges-once" in fixes)
        self._register_orders(session, best_effort_last="capacity-best-effort-last" in fixes)
        simulation = CapacitySimulation(session, self.ledger, self._claims)
        session.points.simulate_add_task.add(self.name, simulation.add)
        session.points.simulate_remove_task.add(self.name, simulation.remove)
        session.points.simulate_allocatable.add(self.name, simulation.allocatable)
        session.points.handle(self._on_allocate, self._on_deallocate)

    def on_session_close(self, session: Session) -> None:
        """Nothing to write."""

    def _register_limits(self, session: Session, *, charge_on_admission: bool) -> None:
        limits = CapacityLimits(
            session, self.ledger, self._claims, levels=self._levels, charge_on_admission=charge_on_admission
        )
        reclaim = CapacityReclaim(session, self.ledger, levels=self._levels)
        points = session.points
        points.reclaimable.add(self.name, reclaim.reclaimable)
        points.unified_evictable.add(self.name, reclaim.evictable)
        points.preemptive.add(self.name, limits.preemptive)
        points.allocatable.add(self.name, limits.allocatable)
        points.job_enqueueable.add(self.name, limits.job_enqueueable)
        if charge_on_admission:
            points.job_enqueued.add(self.name, limits.job_enqueued)

    def _register_orders(self, session: Session, *, best_effort_last: bool) -> None:
        orders = QueueOrders(self.ledger, best_effort_last=best_effort_last)
        if not self.ledger.hierarchical:
            session.points.queue_order.add(self.name, orders.flat)
        elif self.ledger.ready:
            session.points.queue_order.add(self.name, orders.tree)
            session.points.victim_queue_order.add(self.name, orders.victims)

    # --- keeping up
    # -------------------------------------------------------------------------------------------------------------

    def _count_claims(self) -> None:
        """Device quotas: only where claims exist at all."""
        if not self._claims.active or not self.ledger.ready:
            return
        jobs: dict[str, list[Job]] = {}
        for job in self._session.jobs.in_order:
            jobs.setdefault(job.pod_group.queue, []).append(job)
        for queue in self._session.snapshot.queues:
            self.ledger.of(queue.name).claims = quota_of(queue)
        for name, of_queue in jobs.items():
            own, *ancestors = self.ledger.line(name)
            self._claims.open(own, of_queue, ancestors)

    def _on_allocate(self, task: Task, node: int) -> None:
        self._move(task, placed=True)

    def _on_deallocate(self, task: Task, node: int) -> None:
        self._move(task, placed=False)

    def _move(self, task: Task, *, placed: bool) -> None:
        job = self._session.job_of(task)
        if job is None or not self.ledger.ready:
            return
        line = self.ledger.line(job.pod_group.queue)
        for attributes in line:
            if placed:
                attributes.allocated.add(task.template.request)
                self._claims.take(attributes.claims, task)
            else:
                attributes.allocated.sub_without_assert(task.template.request)
                self._claims.give_back(attributes.claims, task)
        # Volcano leaves the ancestors' shares as they were when the session opened.
        for attributes in line if self._fresh_ancestors else line[:1]:
            attributes.update_share()

    # --- numbers
    # ------------------------------------------------------------------------------------------------------------------

    def gauges(self) -> QueueTables | None:
        """The numbers of each queue when the session opened; nothing while the tree cannot be used."""
        return gauges(self.ledger) if self.ledger.ready else None

    def amounts(self) -> QueueTables | None:
        """What Volcano has no metric for; nothing while the tree cannot be used."""
        return amounts(self.ledger) if self.ledger.ready else None

    def share_now(self, queue: str) -> float | None:
        """By which queues are ordered now; None while the tree cannot be used."""
        return self.ledger.of(queue).share if self.ledger.ready else None

    def held_now(self, queue: str) -> Resource | None:
        """What the queue holds now; None while the tree cannot be used."""
        return self.ledger.of(queue).allocated if self.ledger.ready else None

    def verdicts(self) -> QueueTables | None:
        """Which queues are overused as the session closes; nothing while the tree cannot be used."""
        return overused(self.ledger) if self.ledger.ready else None
