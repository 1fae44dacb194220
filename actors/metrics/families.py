"""Volcano's metrics as Prometheus families (source: Volcano `pkg/scheduler/metrics`), and a few of our own.

Volcano's begin with `volcano_`, ours with `pumice_`. Latencies are in milliseconds, as the names say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge

from pumice.actors.metrics.card_families import CardFamilies
from pumice.actors.metrics.histogram_family import HistogramFamily
from pumice.actors.metrics.job_families import JobFamilies
from pumice.actors.metrics.pending_families import PendingFamilies
from pumice.actors.metrics.queue_families import QueueFamilies
from pumice.actors.metrics.shadow_families import ShadowFamilies
from pumice.actors.metrics.share_families import ShareFamilies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.messages.card_table import CardTable
    from pumice.core.messages.events import CycleMeasured, TasksBound
    from pumice.core.messages.job_shares import JobShares
    from pumice.core.messages.queue_tables import QueueTables
    from pumice.core.messages.shadow import ShadowCompared
    from pumice.core.messages.supervision import MailboxStatistics


def bounds(least: float, most: float, count: int) -> tuple[float, ...]:
    """Bounds of buckets that grow by a factor from `least` to `most`, as Volcano's do, to four digits."""
    factor = (most / least) ** (1 / (count - 1))
    return tuple(float(f"{least * factor**power:.4g}") for power in range(count))


class Families:
    """Every family there is, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._latencies()
        self._counts()
        self._queues, self._jobs, self._pending = QueueFamilies(), JobFamilies(), PendingFamilies()
        self._cards, self._shares, self._shadow = CardFamilies(), ShareFamilies(), ShadowFamilies()
        for families in (self._queues, self._jobs, self._pending, self._cards, self._shares, self._shadow):
            self.registry.register(families)
        self._own()

    def _latencies(self) -> None:
        session, waits = bounds(1, 5000, 20), bounds(100, 120_000, 30)
        self._e2e = self._histogram("e2e_scheduling_latency", "One session, from snapshot to written statuses", session)
        self._open = self._histogram("open_session_duration", "Opening a session", session)
        self._action = self._histogram("action_scheduling_latency", "One action", bounds(1, 2000, 20), "action")
        self._plugin = self._histogram(
            "plugin_scheduling_latency", "One plugin at a point", bounds(0.1, 100, 15), "plugin", "OnSession"
        )
        self._job = self._histogram("e2e_job_scheduling_latency", "One job that got nodes, from its creation", waits)
        self._task = self._histogram(
            "task_scheduling_latency", "One task, from creation", bounds(50, 60_000, 30), "stage"
        )
        self._stage = self._histogram("scheduling_stage_duration", "One task at a stage", bounds(0.1, 500, 20), "stage")
        self._made = self._histogram(
            "controller_job_to_pod_creation_latency", "One pod of a Job, from its creation", bounds(50, 60_000, 30)
        )

    def _counts(self) -> None:
        self._attempts = self._counter("schedule_attempts_total", "Attempts to schedule a task, by result", "result")
        self._attempts_by: dict[str, Counter] = {}
        # Counters whose names do not end in _total, which this library insists on: gauges that only rise.
        self._preemptions = self._gauge("total_preemption_attempts")
        self._victims = self._gauge("pod_preemption_victims")

    def _own(self) -> None:
        registry = self.registry
        self._cycle = Gauge("pumice_cycle", "Number of the newest cycle", registry=registry)
        self._queued = Gauge("pumice_mailbox_queued", "Envelopes waiting", ["actor"], registry=registry)
        self._high = Gauge("pumice_mailbox_high_water", "Most envelopes that ever waited", ["actor"], registry=registry)
        self._received = Gauge("pumice_mailbox_received", "Messages received", ["actor"], registry=registry)
        self._blocked = Gauge(
            "pumice_mailbox_blocked_senders", "Senders that wait for room", ["actor"], registry=registry
        )

        self._longest = Gauge(
            "pumice_request_longest_seconds",
            "Processor time of the longest step of a request, for which everybody else waited",
            ["request"],
            registry=registry,
        )

    # --- what is measured

    def cycle(self, measured: CycleMeasured) -> None:
        """Note one cycle."""
        self._cycle.set(measured.cycle)
        self._e2e.observe((measured.total_s * 1e3,))
        if measured.actions:  # else no session was needed
            self._open.observe((measured.open_s * 1e3,))
        for action, seconds in measured.actions.items():
            self._action.observe((seconds * 1e3,), action)
        for point, plugins in measured.plugins.items():
            for plugin, seconds in plugins.items():
                self._plugin.observe((seconds * 1e3,), plugin, point)
        self._job.observe(self._jobs.placed(measured.binding, measured.now))
        self._task.observe([(measured.now - created) * 1e3 for created in measured.created], "Assumed")
        for result, count in measured.attempts.items():
            self._attempts_with(result).inc(count)
        self._victims.set(measured.victims)
        self._preemptions.inc(measured.preemption_attempts)
        self._pending.show(measured.unscheduled)

    def bound(self, tasks: TasksBound) -> None:
        """Note how long binds took, from decision to outcome, and from the pods' creation."""
        self._stage.observe([seconds * 1e3 for seconds in tasks.seconds], "Bind")
        self._task.observe([seconds * 1e3 for seconds in tasks.since_created], "Bound")

    def pods_created(self, seconds: Sequence[float]) -> None:
        """Note how long after its Job each pod was created."""
        self._made.observe([each * 1e3 for each in seconds])

    def queues(self, tables: tuple[QueueTables, ...]) -> None:
        """Show the queues' newest numbers."""
        self._queues.show(tables)

    def cards(self, table: CardTable) -> None:
        """Show how much of which card is in use."""
        self._cards.show(table)

    def shares(self, shares: JobShares) -> None:
        """Show who has how much of the cluster."""
        self._shares.show(shares)

    def shadow(self, compared: ShadowCompared) -> None:
        """Note how far another cluster's scheduler and Pumice decided alike."""
        self._shadow.note(compared)

    def mailboxes(self, statistics: Sequence[MailboxStatistics]) -> None:
        """Note how full the mailboxes are."""
        for each in statistics:
            self._queued.labels(each.name).set(each.queued)
            self._high.labels(each.name).set(each.high_water)
            self._received.labels(each.name).set(each.received)
            self._blocked.labels(each.name).set(each.blocked_senders)

    def longest(self, seconds: float, request: str) -> None:
        """Show which request held the loop longest so far."""
        if request:
            self._longest.clear()
            self._longest.labels(request).set(seconds)

    def _attempts_with(self, result: str) -> Counter:
        """The library makes sure of the labels, slowly, at every call; results are few."""
        known = self._attempts_by.get(result)
        if known is None:
            known = self._attempts_by[result] = self._attempts.labels(result)
        return known

    # --- making families

    def _histogram(self, name: str, text: str, buckets: Sequence[float], *labels: str) -> HistogramFamily:
        family = HistogramFamily(f"volcano_{name}_milliseconds", text, buckets, labels)
        self.registry.register(family)
        return family

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"volcano_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str) -> Gauge:
        return Gauge(f"volcano_{name}", name.replace("_", " "), registry=self.registry)
