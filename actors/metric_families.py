"""Volcano's metrics as Prometheus families (source: Volcano `pkg/scheduler/metrics`), and a few of our own.

Volcano's begin with `volcano_`, ours with `pumice_`. Latencies are in milliseconds, as the names say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from actors.queue_families import QueueFamilies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from actors.mailbox import MailboxStatistics
    from core.messages.events import CycleMeasured, TasksBound

MILLISECONDS = tuple(5.0 * 2**power for power in range(10))
"""Volcano's buckets: 5 ms doubling ten times."""


class Families:
    """Every family there is, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._children: dict[tuple[str, ...], Histogram] = {}
        self._latencies()
        self._counts()
        self._queues = QueueFamilies()
        self.registry.register(self._queues)
        self._own()

    def _latencies(self) -> None:
        self._e2e = self._histogram("e2e_scheduling_latency_milliseconds", "One session, from snapshot to commit")
        self._open = self._histogram("open_session_duration_milliseconds", "Opening a session")
        self._action = self._histogram("action_scheduling_latency_milliseconds", "One action", "action")
        self._plugin = self._histogram("plugin_scheduling_latency_milliseconds", "One plugin", "plugin", "OnSession")
        self._task = self._histogram("task_scheduling_latency_milliseconds", "One task, by stage", "stage")

    def _counts(self) -> None:
        self._attempts = self._counter("schedule_attempts_total", "Attempts to schedule a task, by result", "result")
        # Counters whose names do not end in _total, which this library insists on: gauges that only rise.
        self._preemptions = self._gauge("total_preemption_attempts")
        self._victims = self._gauge("pod_preemption_victims")
        self._unscheduled_tasks = self._gauge("unschedule_task_count", "job_id")
        self._unscheduled_jobs = self._gauge("unschedule_job_count")
        self._retries = self._gauge("job_retry_counts", "job_id")

    def _own(self) -> None:
        registry = self.registry
        self._cycle = Gauge("pumice_cycle", "Number of the newest cycle", registry=registry)
        self._queued = Gauge("pumice_mailbox_queued", "Envelopes waiting", ["actor"], registry=registry)
        self._high = Gauge("pumice_mailbox_high_water", "Most envelopes that ever waited", ["actor"], registry=registry)
        self._received = Gauge("pumice_mailbox_received", "Messages received", ["actor"], registry=registry)
        self._blocked = Gauge(
            "pumice_mailbox_blocked_senders", "Senders that wait for room", ["actor"], registry=registry
        )

    # --- what is measured

    def cycle(self, measured: CycleMeasured) -> None:
        """Note one cycle."""
        self._cycle.set(measured.cycle)
        self._e2e.observe(measured.total_s * 1e3)
        self._open.observe(measured.open_s * 1e3)
        for action, seconds in measured.actions.items():
            self._child(self._action, action).observe(seconds * 1e3)
        for plugin, seconds in measured.plugins.items():
            self._child(self._plugin, plugin, "OnSessionOpen").observe(seconds * 1e3)
        for result, count in measured.attempts.items():
            self._attempts.labels(result).inc(count)
        self._victims.set(measured.victims)
        self._preemptions.inc(measured.preemption_attempts)
        self._pending(measured.unscheduled)
        self._queues.show(measured.queues)

    def bound(self, tasks: TasksBound) -> None:
        """Note how long binds took, from decision to outcome."""
        stage = self._task.labels("Bound")
        for seconds in tasks.seconds:
            stage.observe(seconds * 1e3)

    def mailboxes(self, statistics: Sequence[MailboxStatistics]) -> None:
        """Note how full the mailboxes are."""
        for each in statistics:
            self._queued.labels(each.name).set(each.queued)
            self._high.labels(each.name).set(each.high_water)
            self._received.labels(each.name).set(each.received)
            self._blocked.labels(each.name).set(each.blocked_senders)

    def _pending(self, unscheduled: Mapping[str, int]) -> None:
        """Jobs that are pending no more vanish."""
        self._unscheduled_tasks.clear()
        for job, count in unscheduled.items():
            self._unscheduled_tasks.labels(job).set(count)
            self._retries.labels(job).inc()
        self._unscheduled_jobs.set(len(unscheduled))

    def _child(self, family: Histogram, *labels: str) -> Histogram:
        """The library makes sure of the labels, slowly, at every call; those of actions and plugins are few."""
        known = self._children.get(labels)
        if known is None:
            known = self._children[labels] = family.labels(*labels)
        return known

    # --- making families

    def _histogram(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(f"volcano_{name}", text, labels, registry=self.registry, buckets=MILLISECONDS)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"volcano_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, *labels: str) -> Gauge:
        return Gauge(f"volcano_{name}", name.replace("_", " "), labels, registry=self.registry)
