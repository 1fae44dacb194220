# SPDX-License-Identifier: Apache-2.0
"""The metrics actor: Volcano's metric names in a Prometheus registry of our own.

Owns: the registry.
Accepts: `CycleMeasured`, `TasksBound`, `PodsCreated`, `QueuesMeasured`, `ShadowCompared`; `Expose`, which it
answers with the text format; `ReadRecent`.
Sends: asks the supervisor how full the mailboxes are.
When full: the session runner waits.
Stops: after what is queued. After a crash counters start from zero, as Prometheus expects of a restart.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from itertools import islice
from math import inf, isnan
from time import time
from typing import TYPE_CHECKING, Final, assert_never

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from pumice.actors.metrics.families import PendingFamilies, ShadowFamilies
from pumice.actors.runtime.actor import Actor
from pumice.actors.system.ports import MetricsMessage, MetricsReply
from pumice.core.messages.boards import ReadRecent, RecentRead
from pumice.core.messages.commands import Expose, MeasureProcess
from pumice.core.messages.events import CycleMeasured, PodsCreated, ShadowCompared, TasksBound
from pumice.core.messages.queue_tables import CardTable, JobShares, QueuesMeasured, QueueTables, readable
from pumice.core.messages.replies import Exposition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pumice.actors.runtime.actor import Context
    from pumice.actors.system.ports import MetricsPort, SupervisorPort
    from pumice.core.messages.commands import MailboxStatistics
    from pumice.core.messages.decisions import BindingJob
    from pumice.core.messages.queue_tables import QueueColumns
    from pumice.core.state.dimensions import FloatArray

# --- Volcano's metrics, and a few of our own
# Volcano's begin with `volcano_`, ours with `pumice_`. Latencies are in milliseconds, as the names say.

# --- Queues
# Names as in Volcano (`metrics/queue.go`); guarantee, inqueue and elastic, which Volcano has no metric for, are named
# alike.

AMOUNTS: Final = {
    "allocated": "what the tasks of a queue hold",
    "request": "what the tasks of a queue hold and its pending tasks ask for",
    "deserved": "what a queue deserves",
    "capacity": "the most a queue may hold by its own capability",
    "real_capacity": "the most a queue may hold once other queues' guarantees are taken off",
    "guarantee": "what is kept for a queue",
    "inqueue": "what admitted jobs of a queue were promised and do not hold yet",
    "elastic": "what jobs of a queue hold beyond their minimum",
}
NUMBERS: Final = {
    "share": "how much of what it deserves a queue holds",
    "weight": "the weight of a queue",
    "overused": "whether a queue holds what it deserves or more",
}
CPU, MEMORY, SCALARS = "milli_cpu", "memory_bytes", "scalar_resources"


class QueueFamilies(Collector):
    """Shows the newest tables. A deleted queue is hidden; tables without queues change nothing."""

    def __init__(self) -> None:
        self._newest: tuple[QueueTables, ...] = ()

    def show(self, tables: tuple[QueueTables, ...]) -> None:
        """Show these from now on."""
        if any(each.queues for each in tables):
            self._newest = tables

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield a family for each metric; without any queue they are empty."""
        columns = readable(self._newest)
        for amount, what in AMOUNTS.items():
            for unit in (CPU, MEMORY):
                yield _plain(columns, f"{amount}_{unit}", f"{unit.replace('_', ' ')}: {what}")
            yield _scalars(columns, f"{amount}_{SCALARS}", f"other resources: {what}")
        for number, what in NUMBERS.items():
            yield _plain(columns, number, what)


def _plain(columns: QueueColumns, metric: str, text: str) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"volcano_queue_{metric}", text, labels=("queue_name",))
    for queue, value in _numbers(columns, metric):
        family.add_metric((queue,), value)
    return family


def _scalars(columns: QueueColumns, metric: str, text: str) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"volcano_queue_{metric}", text, labels=("queue_name", "resource"))
    for name in columns.values:
        known, _, resource = name.partition(":")
        if known == metric:
            for queue, value in _numbers(columns, name):
                family.add_metric((queue, resource), value)
    return family


def _numbers(columns: QueueColumns, metric: str) -> Iterator[tuple[str, float]]:
    values = columns.values.get(metric, ())
    return ((queue, value) for queue, value in zip(columns.queues, values, strict=False) if not isnan(value))


# --- A histogram that is cheap to fill


class _Histogram:
    """One histogram of a family. `counts`: values by bucket, above the bucket before it; `created`: seconds since the
    epoch.
    """

    __slots__ = ("counts", "created", "total")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * buckets
        self.total = 0.0
        self.created = time()


class HistogramFamily(Collector):
    """A histogram for every combination of labels. `bounds`: upper ones of the buckets, rising."""

    def __init__(self, name: str, text: str, bounds: Sequence[float], labels: tuple[str, ...] = ()) -> None:
        self._name = name
        self._text = text
        self._labels = labels
        self._bounds = (*bounds, inf)
        self._histograms: dict[tuple[str, ...], _Histogram] = {}
        if not labels:
            self._begin(())  # shown before anything was observed

    def observe(self, values: Iterable[float], *labels: str) -> None:
        """Note values; negative ones, which come from clocks that disagree, count as 0."""
        histogram, bounds = self._histograms.get(labels) or self._begin(labels), self._bounds
        for value in values:
            known = value if value > 0.0 else 0.0
            histogram.counts[bisect_left(bounds, known)] += 1
            histogram.total += known

    def _begin(self, labels: tuple[str, ...]) -> _Histogram:
        begun = self._histograms[labels] = _Histogram(len(self._bounds))
        return begun

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Yield one family; the start times of its histograms stand after them."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        for labels, histogram in self._histograms.items():
            below = 0
            buckets: list[tuple[str, float]] = []
            for bound, count in zip(self._bounds, histogram.counts, strict=True):
                below += count
                buckets.append(("+Inf" if bound == inf else str(bound), below))
            family.add_metric(labels, buckets, histogram.total)
        for labels, histogram in self._histograms.items():
            named = dict(zip(self._labels, labels, strict=True))
            # Behind all buckets: the text format wants the samples of one family together.
            family.add_sample(f"{self._name}_created", named, histogram.created)
        yield family


# --- Shares of jobs and namespaces
# Source: Volcano `metrics/job.go`, `metrics/namespace.go`.

"""Jobs that are shown: those with the largest shares. Volcano shows all."""
WEIGHT: Final = 1.0
"""Of every namespace: Volcano declares the metric and knows no other weights any more."""
OF_NAMESPACES: Final = {
    "share": "Share for one namespace",
    "weight": "Weight for one namespace",
    "weighted_share": "Weighted share for one namespace",
}


class ShareFamilies(Collector):
    """Shows the newest shares; jobs and namespaces that have gone are hidden."""

    def __init__(self) -> None:
        self._newest = JobShares()

    def show(self, shares: JobShares) -> None:
        """Show these from now on."""
        self._newest = shares

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield one family of jobs, three of namespaces."""
        newest, shares = self._newest, self._newest.by_job()
        family = GaugeMetricFamily("volcano_job_share", "Share for one job", labels=("job_ns", "job_id"))
        for place in _largest(shares):
            namespace, _, name = newest.jobs[place].partition("/")
            family.add_metric((namespace, name), float(shares[place]))
        yield family
        for name, text in OF_NAMESPACES.items():
            family = GaugeMetricFamily(f"volcano_namespace_{name}", text, labels=("namespace_name",))
            for namespace, share in zip(newest.namespaces, newest.by_namespace().tolist(), strict=True):
                family.add_metric((namespace,), WEIGHT if name == "weight" else share / WEIGHT)
            yield family


def _largest(shares: FloatArray) -> list[int]:
    places: list[int] = np.argsort(-shares, kind="stable")[:MOST].tolist()
    return places


# --- Cards of virtual GPUs
# Source: Volcano `vgpu/metrics.go`.

OF_CARDS: Final = {
    "shared_number": "The number of vgpu tasks sharing this card",
    "allocated_memory": "The number of vgpu memory allocated in this card",
    "allocated_cores": "The percentage of gpu compute cores allocated in this card",
    "memory_limit": "The number of total device memory in this card",
}
"""In the order of the table's numbers."""
OF_PODS: Final = {
    "memory_allocation": "The vgpu device memory allocated for a certain pod",
    "core_allocation": "The vgpu device core allocated for a certain pod",
}
CARD: Final = ("devID", "NodeName")


class CardFamilies(Collector):
    """Shows the newest table; cards and pods that have gone are hidden."""

    def __init__(self) -> None:
        self._newest = CardTable()

    def show(self, table: CardTable) -> None:
        """Show this from now on."""
        self._newest = table

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield four families of cards, two of pods."""
        table = self._newest
        for (name, text), line in zip(OF_CARDS.items(), table.columns(), strict=True):
            family = GaugeMetricFamily(f"volcano_vgpu_device_{name}", text, labels=CARD)
            for card, node, value in zip(table.cards, table.nodes, line.tolist(), strict=True):
                family.add_metric((card, node), value)
            yield family
        for (name, text), field in zip(OF_PODS.items(), ("memory", "cores"), strict=True):
            labels = (*CARD, "podName")
            family = GaugeMetricFamily(f"volcano_vgpu_device_{name}_for_a_certain_pod", text, labels=labels)
            for each in table.pods:
                family.add_metric((table.cards[each.card], table.nodes[each.card], each.pod), getattr(each, field))
            yield family


# --- Waiting times of jobs
# Source: Volcano `metrics.go`, `allocate.go`.

LABELS: Final = ("job_name", "queue", "job_namespace")
MOST: Final = 1_000
"""Jobs that are shown: those that got nodes last. Volcano shows a job until it is gone, however many there are."""


class JobFamilies(Collector):
    """`volcano_e2e_job_scheduling_` `duration` (milliseconds from a job's creation to the newest node it got),
    `start_time` and `last_time` (those two moments, in seconds since the epoch).
    """

    def __init__(self) -> None:
        self._placed: dict[tuple[str, str, str], tuple[float, float, float]] = {}

    def placed(self, jobs: Mapping[str, BindingJob], now: float) -> list[float]:
        """Note the jobs that got nodes at `now`, by "namespace/name"; return the wait of each in milliseconds."""
        waits: list[float] = []
        for key, job in jobs.items():
            namespace, _, name = key.partition("/")
            labels, waited = (name, job.queue, namespace), max(now - job.created, 0.0) * 1e3
            self._placed.pop(labels, None)  # the newest stand last
            self._placed[labels] = (waited, job.created, now)
            waits.append(waited)
        for labels in [*islice(self._placed, max(len(self._placed) - MOST, 0))]:
            del self._placed[labels]
        return waits

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield three families."""
        texts = {
            "duration": "Milliseconds from the creation of a job to the newest node that one of its tasks got",
            "start_time": "When a job was created, in seconds since the epoch",
            "last_time": "When a job got its newest node, in seconds since the epoch",
        }
        for place, (name, text) in enumerate(texts.items()):
            family = GaugeMetricFamily(f"volcano_e2e_job_scheduling_{name}", text, labels=LABELS)
            for labels, values in self._placed.items():
                family.add_metric(labels, values[place])
            yield family


def bounds(least: float, most: float, count: int) -> tuple[float, ...]:
    """Return bounds of buckets that grow by a factor from `least` to `most`, as Volcano's do, to four digits."""
    factor = (most / least) ** (1 / (count - 1))
    return tuple(float(f"{least * factor**power:.4g}") for power in range(count))


class Families:
    """All families, in a registry of their own."""

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
            "Processor time of the longest step of a request: it blocked the event loop",
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
        """Show the use of each card."""
        self._cards.show(table)

    def shares(self, shares: JobShares) -> None:
        """Show each job's share of the cluster."""
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
        """Return the counter of a result. The library checks the labels, slowly, at every call; results are few."""
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


RECENT: Final = 240
"""Number of the newest cycles that are remembered."""


class Metrics(Actor[MetricsMessage, MetricsReply]):
    """Keeps Volcano's metrics, and answers with their text."""

    def __init__(self, name: str, mailbox: MetricsPort, context: Context, *, supervisor: SupervisorPort) -> None:
        super().__init__(name, mailbox, context)
        self._families = Families()
        self._supervisor = supervisor
        self._recent: deque[CycleMeasured] = deque(maxlen=RECENT)
        self._queues = QueuesMeasured()

    def delivers_inline(self, message: MetricsMessage) -> bool:
        """Return True for all messages except those that need the supervisor."""
        return not isinstance(message, Expose)

    async def handle(self, message: MetricsMessage) -> MetricsReply | None:
        """Note one measurement, or return the whole exposition."""
        match message:
            case CycleMeasured():
                self._families.cycle(message)
                self._recent.append(message)
            case TasksBound():
                self._families.bound(message)
            case PodsCreated():
                self._families.pods_created(message.seconds)
            case ShadowCompared():
                self._families.shadow(message)
            case QueuesMeasured():
                self._queues = message
                self._families.queues(message.tables)
                self._families.cards(message.cards)
                self._families.shares(message.shares)
            case ReadRecent():
                cycles = tuple(each for each in self._recent if each.cycle > message.after)
                return RecentRead(cycles, self._queues)
            case Expose():
                measured = await self._supervisor.ask(MeasureProcess())
                self._families.mailboxes(measured.mailboxes)
                self._families.longest(measured.longest_s, measured.longest_request)
                return Exposition(generate_latest(self._families.registry))
            case _:
                assert_never(message)
        return None
