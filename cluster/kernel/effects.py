# SPDX-License-Identifier: Apache-2.0
"""Decisions of a cycle, carried out inline: binds, the writes before them, evictions, statuses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Any

from pumice.cluster.api.store import Store
from pumice.cluster.kernel.pre_bind import (
    USER,
    Place,
    PreBindError,
    Write,
    awaited_places,
    is_ready,
    taken_back,
    writes_of,
)
from pumice.core.default_scheduler.profile import NAME as DEFAULT_SCHEDULER
from pumice.core.messages.commands import BindPod, EvictPod, ReportStatus, StatusCondition, Update
from pumice.core.messages.decisions import Bind, CycleResult, Evict, PodCondition, PodGroupStatus, QueueStatus
from pumice.core.messages.replies import Accepted
from pumice.core.objects.metadata import Object
from pumice.core.state.view import View
from pumice.storage import codec

# --- Requests of decisions to the api, independent of their carrier and time.


def conditions(reason: str, scheduler: str = "volcano") -> tuple[StatusCondition, ...]:
    """Return the conditions of an evicted pod; Kubernetes' own scheduler leaves Ready to the kubelet."""
    why = f"{scheduler}: preempting to accommodate a higher priority pod"
    target = StatusCondition("DisruptionTarget", "True", "PreemptionByScheduler", why)
    if scheduler == DEFAULT_SCHEDULER:
        return (target,)
    return StatusCondition("Ready", "False", "Evict", f"Pod is evicted, because of {reason}"), target


def operation(cycle: int, decision: Bind | Evict) -> str:
    """Return the name of a decision: it is carried out once, however often it is asked for."""
    return f"{cycle}/{decision.uid}"


def binding(bind: Bind, cause: str, sequence: int = 0, until: float = inf) -> BindPod:
    """Return the request that binds a pod to its node; `sequence`: the decision's number in a journal."""
    return BindPod(bind.namespace, bind.name, bind.uid, bind.node, cause, sequence, bind.annotations, until)


def eviction(evict: Evict, cause: str, sequence: int = 0, until: float = inf) -> EvictPod:
    """Return what takes a pod off its node."""
    said = conditions(evict.reason, DEFAULT_SCHEDULER if evict.action == DEFAULT_SCHEDULER else "volcano")
    return EvictPod(evict.namespace, evict.name, evict.uid, said, cause, sequence, until)


def report_of(said: PodCondition | PodGroupStatus | QueueStatus, cycle: int, seen: int) -> ReportStatus:
    """Return what writes down what a cycle says, which knows objects as of the revision `seen`."""
    match said:
        case PodCondition():
            return ReportStatus("Pod", said.namespace, said.name, said, cycle, seen)
        case PodGroupStatus():
            return ReportStatus("PodGroup", said.namespace, said.name, said, cycle, seen)
        case QueueStatus():
            return ReportStatus("Queue", "", said.name, said, cycle, seen)


@dataclass(slots=True)
class Waiting:
    """A bind that waits for claims until `deadline` (seconds since the epoch)."""

    bind: Bind
    cause: str
    deadline: float


class Effects:
    """Carries out decisions on a store, for the view of the scheduler that decided: a decision without effect is undone
    there.

    Words alone (why something waits) are remembered and not written: no decision reads them. `quiet`: revisions that
    brought nothing to decide by; `own`: those of what was said of PodGroups. `wordless`: words are always the same, so
    that they may as well be written.
    """

    def __init__(self, store: Store, *, wordless: bool) -> None:
        self._store = store
        self.wordless = wordless
        self._waiting: dict[str, Waiting] = {}
        self._said: dict[tuple[str, str, str], Any] = {}
        self._written: dict[tuple[str, str], Any] = {}
        self.quiet: set[int] = set()
        self.own: set[int] = set()

    def carry_out(self, result: CycleResult, view: View, now: float) -> bool:
        """Carry out all decisions, and return whether any status changed."""
        for bind in result.binds:
            self._bind(bind, operation(result.cycle, bind), view, now)
        for evict in result.evicts:
            self._evict(evict, operation(result.cycle, evict), view, now)
        return self._report(result, now)

    def _bind(self, bind: Bind, cause: str, view: View, now: float) -> None:
        if bind.pre_bind is None or not bind.pre_bind.writes:
            self._place(bind, cause, view, now)
            return
        waiting = Waiting(bind, cause, now + bind.pre_bind.timeout_s)
        try:
            for write in writes_of(bind):
                self._write(write, now)
        # some of the writes may stand already, so that they are taken back
        except PreBindError:
            self._give_up(waiting, view, now)
        else:
            self._waiting[cause] = waiting

    def _place(self, bind: Bind, cause: str, view: View, now: float) -> None:
        # Refused (the pod was deleted meanwhile, say): the view had counted it on its node since the cycle.
        if not isinstance(self._store.apply(binding(bind, cause), now), Accepted):
            view.forget(bind.namespace, bind.name, bind.uid)

    def _evict(self, evict: Evict, cause: str, view: View, now: float) -> None:
        if not isinstance(self._store.apply(eviction(evict, cause), now), Accepted):
            view.unevict(evict.namespace, evict.name, evict.uid)

    def in_flight(self) -> tuple[Bind, ...]:
        """Return binds that wait for claims."""
        return tuple(waiting.bind for waiting in self._waiting.values())

    # --- claims

    def look(self, view: View, now: float) -> None:
        """Bind what waited for claims and has them, give up what never will."""
        # a copy: binds leave the table meanwhile
        for cause, waiting in list(self._waiting.items()):
            try:
                ready = is_ready(waiting.bind, self._read(awaited_places(waiting.bind)))
            except PreBindError:
                self._give_up(waiting, view, now)
                continue
            if ready:
                del self._waiting[cause]
                self._place(waiting.bind, cause, view, now)
            elif now >= waiting.deadline:
                self._give_up(waiting, view, now)

    def next_due(self) -> float | None:
        """Return when the first bind that waits is given up."""
        return min((waiting.deadline for waiting in self._waiting.values()), default=None)

    def _give_up(self, waiting: Waiting, view: View, now: float) -> None:
        # out of the table first: it must not keep its own writes from being taken back
        self._waiting.pop(waiting.cause, None)
        bind = waiting.bind
        for write in taken_back(bind, self.in_flight()):
            try:
                self._write(write, now, undo=True)
            except PreBindError:
                continue  # gone, or in other hands
        view.forget(bind.namespace, bind.name, bind.uid)

    def _write(self, write: Write, now: float, *, undo: bool = False) -> None:
        after = write.after(self._read(write.places), undo=undo)
        if after is not None:
            reply = self._store.apply(Update(codec.pack(after), user=USER), now)
            if not isinstance(reply, Accepted):
                raise PreBindError(f"{' '.join(write.place)} cannot be written")

    def _read(self, places: Iterable[Place]) -> dict[Place, Object | None]:
        return {place: self._store.tables.read(place) for place in places}

    # --- words

    def forget(self, namespace: str, name: str) -> None:
        """Forget a deleted PodGroup: a new one of that name has no written status."""
        self._written.pop((namespace, name), None)
        self._said.pop(("PodGroup", namespace, name), None)

    def _report(self, result: CycleResult, now: float) -> bool:
        news = False
        for pod in result.pod_conditions:
            news |= self._pod(pod, result.cycle, now)
        for group in result.pod_groups:
            news |= self._group(group, result.cycle, now)
        for queue in result.queues:
            news |= self._is_new("Queue", "", queue.name, queue.allocated)
        return news

    def _pod(self, pod: PodCondition, cycle: int, now: float) -> bool:
        if not self._is_new("Pod", pod.namespace, pod.name, (pod.uid, pod.reason, pod.message, pod.nominated)):
            return False
        # A waiting pod's words alone: no decision reads them, and writing them would show all machines a change.
        if pod.nominated == "":
            return True
        self._store.apply(report_of(pod, cycle, self._store.revision), now)
        return False

    def _group(self, group: PodGroupStatus, cycle: int, now: float) -> bool:
        name = (group.namespace, group.name)
        counts = (group.running, group.succeeded, group.failed)
        news = self._is_new("PodGroup", *name, (group.conditions, counts))
        standing = (group.phase, group.annotations)
        known = self._written.get(name)
        if known == (standing, counts) and not self.wordless:
            return news
        self._written[name] = (standing, counts)
        if isinstance(self._store.apply(report_of(group, cycle, self._store.revision), now), Accepted):
            self.own.add(self._store.revision)
            if known is not None and known[0] == standing:
                self.quiet.add(self._store.revision)
        return news

    def _is_new(self, kind: str, namespace: str, name: str, words: object) -> bool:
        key = (kind, namespace, name)
        if self._said.get(key) == words:
            return False
        self._said[key] = words
        return True
