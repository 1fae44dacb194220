"""Volcano's metrics as Prometheus families (source: Volcano `pkg/scheduler/metrics`), and a few of our own.

Volcano's begin with `volcano_`, ours with `pumice_`. Latencies are in milliseconds, as the names say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from actors.job_families import JobFamilies
from actors.queue_families import QueueFamilies
from actors.stage_families import StageFamilies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from actors.mailbox import MailboxStatistics
    from core.messages.events import CycleMeasured, TasksBound


def bounds(least: float, most: float, count: int) -> tuple[float, ...]:
    """Bounds of buckets that grow by a factor from `least` to `most`, as Volcano's do, to four digits."""
    factor = (most / least) ** (1 / (count - 1))
    return tuple(float(f"{least * factor**power:.4g}") for power in range(count))


class Families:
    """Every family there is, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._children: dict[tuple[str, ...], Histogram] = {}
        self._latencies()
        self._counts()
        self._queues, self._jobs = QueueFamilies(), JobFamilies()
        self.registry.register(self._queues)
        self.registry.register(self._jobs)
        self._own()

    def _latencies(self) -> None:
        session, waits = bounds(1, 5000, 20), bounds(100, 120_000, 30)
        self._e2e = self._histogram("e2e_scheduling_latency", "One session, from snapshot to commit", session)
        self._open = self._histogram("open_session_duration", "Opening a session", session)
        self._action = self._histogram("action_scheduling_latency", "One action", bounds(1, 2000, 20), "action")
        self._plugin = self._histogram(
            "plugin_scheduling_latency", "One plugin at a point", bounds(0.1, 100, 15), "plugin", "OnSession"
        )
        self._job = self._histogram("e2e_job_scheduling_latency", "One job that got nodes, from its creation", waits)
        self._task = self._stages("task_scheduling_latency", "One task, from creation", bounds(50, 60_000, 30))
        self._stage = self._stages("scheduling_stage_duration", "One task at a stage", bounds(0.1, 500, 20))

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
        for point, plugins in measured.plugins.items():
            for plugin, seconds in plugins.items():
                self._child(self._plugin, plugin, point).observe(seconds * 1e3)
        for waited in self._jobs.placed(measured.binding, measured.now):
            self._job.observe(waited)
        self._task.observe("Assumed", ((measured.now - created) * 1e3 for created in measured.created))
        for result, count in measured.attempts.items():
            self._attempts.labels(result).inc(count)
        self._victims.set(measured.victims)
        self._preemptions.inc(measured.preemption_attempts)
        self._pending(measured.unscheduled)
        self._queues.show(measured.queues)

    def bound(self, tasks: TasksBound) -> None:
        """Note how long binds took, from decision to outcome, and from the pods' creation."""
        self._stage.observe("Bind", (seconds * 1e3 for seconds in tasks.seconds))
        self._task.observe("Bound", (seconds * 1e3 for seconds in tasks.since_created))

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

    def _histogram(self, name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(f"volcano_{name}_milliseconds", text, labels, registry=self.registry, buckets=buckets)

    def _stages(self, name: str, text: str, buckets: Sequence[float]) -> StageFamilies:
        families = StageFamilies(f"volcano_{name}_milliseconds", text, buckets)
        self.registry.register(families)
        return families

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"volcano_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, *labels: str) -> Gauge:
        return Gauge(f"volcano_{name}", name.replace("_", " "), labels, registry=self.registry)
