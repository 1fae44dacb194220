# SPDX-License-Identifier: Apache-2.0
"""The drawing of a timeline: pods as slices on their nodes, jobs on their queues, curves, cycles, crashes, and
evictions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from pumice.core.messages.decisions import Decision, Evict
from pumice.core.messages.events import ActorCrashed, ActorEvent, ActorStarted, CycleDropped, CycleRecord
from pumice.questions.measures.beginning import beginning
from pumice.questions.measures.lives import Listener, Lives
from pumice.questions.measures.measures import Measuring
from pumice.storage.journal import ACTOR, CYCLE, DECISION
from pumice.storage.records import read_as

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.questions.measures.jobs import JobRow
    from pumice.questions.measures.lives import PodLife
    from pumice.questions.measures.measures import Measures
    from pumice.questions.timeline.perfetto import PerfettoWriter
    from pumice.storage.journal import Journal, Stored

# --- Lanes


class Lanes:
    """Hands out the lowest free lane, from 0 on."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._next = 0

    def take(self) -> int:
        """Return the lowest free lane, which is free no longer."""
        if self._free:
            return heappop(self._free)
        self._next += 1
        return self._next - 1

    def give_back(self, lane: int) -> None:
        """Free the lane."""
        heappush(self._free, lane)


CURVES: Final = ("held", "waiting")


@dataclass
class NodeTracks:
    """A node's track, and below it one for each pod that runs beside another."""

    track: int
    lanes: Lanes = field(default_factory=Lanes)
    tracks: list[int] = field(default_factory=list[int])


class PodSlices(Listener):
    """Draws a pod from its binding to its end, and an arrow from each eviction to the pod that it made room for."""

    def __init__(self, writer: PerfettoWriter) -> None:
        self._writer = writer
        self._group = writer.process("nodes", 3)
        self._nodes: dict[str, NodeTracks] = {}
        self._open: dict[str, tuple[NodeTracks, int]] = {}
        self._arrows: dict[str, int] = {}
        self._flows = 0

    def pod_bound(self, pod: PodLife) -> None:
        """Begin a slice in the lowest free lane of the node."""
        node = self._nodes.get(pod.node)
        if node is None:
            node = self._nodes[pod.node] = NodeTracks(self._writer.track(pod.node, self._group))
        lane = node.lanes.take()
        if lane == len(node.tracks):
            node.tracks.append(self._writer.track(f"{pod.node} {lane}", node.track, lane))
        notes = {"job": pod.job, "queue": pod.queue, **{f"asks {name}": of for name, of in pod.request.items()}}
        assert pod.bound is not None
        arrow = self._arrows.pop(pod.full_name, 0)
        self._writer.begin(node.tracks[lane], pod.bound, pod.full_name, notes, ends_flow=arrow)
        self._open[pod.uid] = (node, lane)

    def evicting(self, decision: Evict, at: float) -> None:
        """Begin an arrow on the victim's slice."""
        if (open_slice := self._open.get(decision.uid)) is None:
            return
        flow = 0
        if decision.preemptor:
            self._flows += 1
            flow = self._arrows.setdefault(decision.preemptor, self._flows)
        node, lane = open_slice
        notes = {"action": decision.action, "for": decision.preemptor, "why": decision.reason}
        self._writer.instant(node.tracks[lane], at, f"evict {decision.name}", notes, begins_flow=flow)

    def pod_ended(self, pod: PodLife) -> None:
        """End the slice."""
        assert pod.ended is not None
        self._close(pod.uid, pod.ended)

    def close(self, at: float) -> None:
        """Close all slices at the end of the run."""
        for uid in [*self._open]:
            self._close(uid, at)

    def _close(self, uid: str, at: float) -> None:
        if (open_slice := self._open.pop(uid, None)) is not None:
            node, lane = open_slice
            self._writer.end(node.tracks[lane], at)
            node.lanes.give_back(lane)


class SystemTracks:
    """Cycles as slices from their snapshot to their record, and the lives of actors."""

    def __init__(self, writer: PerfettoWriter) -> None:
        self._writer = writer
        self._cycles = writer.track("cycles", writer.process("scheduler", 1))
        self._group = writer.process("actors", 4)
        self._actors: dict[str, int] = {}
        self._down: set[str] = set()

    def cycle(self, record: CycleRecord, at: float) -> None:
        """Draw one recorded cycle."""
        notes = {"decisions": record.decisions, "revision": record.revision, "digest": record.digest}
        self._writer.begin(self._cycles, min(record.now, at), f"cycle {record.cycle}", notes)
        self._writer.end(self._cycles, at)

    def actor(self, event: ActorEvent, at: float) -> None:
        """Note a start, a crash, a stop; between a crash and the next start the actor is down."""
        if isinstance(event, CycleDropped):
            self._writer.instant(self._cycles, at, f"cycle {event.cycle} lost", {"why": event.error})
            return
        track = self._actors.get(event.actor)
        if track is None:
            track = self._actors[event.actor] = self._writer.track(event.actor, self._group)
        if isinstance(event, ActorStarted) and event.actor in self._down:
            self._down.discard(event.actor)
            self._writer.end(track, at)
        elif isinstance(event, ActorCrashed) and event.actor not in self._down:
            self._down.add(event.actor)
            self._writer.begin(track, at, "down", {"why": event.error})
        else:
            self._writer.instant(track, at, type(event).__name__.removeprefix("Actor").lower())


async def draw(journal: Journal, writer: PerfettoWriter) -> Measures:
    """Draw a whole journal; return its measures. Raises DamagedError."""
    begun = await beginning(journal)
    rows: list[JobRow] = []
    measuring, pods, system = Measuring(begun.at, rows.append), PodSlices(writer), SystemTracks(writer)
    lives = Lives((*measuring.listeners(), pods))

    def record(stored: Stored) -> None:
        _draw_record(stored, pods, system)
        lives.follow(stored)

    ended = await begun.through(journal, lives, record)
    pods.close(ended)
    found = measuring.end(round(ended, 3))
    queues = writer.process("queues", 2)
    _draw_jobs(writer, queues, rows, found)
    _draw_curves(writer, queues, found)
    return found


def _draw_record(stored: Stored, pods: PodSlices, system: SystemTracks) -> None:
    if stored.kind == CYCLE:
        system.cycle(read_as(stored, CycleRecord), stored.at)
    elif stored.kind == ACTOR:
        system.actor(read_as(stored, ActorEvent), stored.at)
    elif stored.kind == DECISION and isinstance(decision := read_as(stored, Decision), Evict):
        pods.evicting(decision, stored.at)


def _draw_jobs(writer: PerfettoWriter, group: int, rows: Iterable[JobRow], found: Measures) -> None:
    """Draw a job that waits, then runs: two slices in a lane of its queue."""
    queues: dict[str, tuple[int, list[tuple[float, int]]]] = {}
    for row in sorted(rows, key=lambda one: (one.submitted, one.job)):
        if row.queue not in queues:
            queues[row.queue] = (writer.track(f"queue {row.queue or '-'}", group), [])
        parent, lanes = queues[row.queue]
        end = found.horizon_s if row.ended is None else row.ended
        free = next((index for index, (until, _) in enumerate(lanes) if until <= row.submitted), len(lanes))
        if free == len(lanes):
            lanes.append((0.0, writer.track(f"jobs {free}", parent, free)))
        track = lanes[free][1]
        lanes[free] = (end, track)
        _draw_job(writer, track, row, found.began, end)


def _draw_job(writer: PerfettoWriter, track: int, row: JobRow, began: float, end: float) -> None:
    notes = {"pods": row.pods, "evictions": row.evictions, "state": row.state}
    writer.begin(track, began + row.submitted, row.job, notes)
    if row.started is None or row.started > row.submitted:
        writer.begin(track, began + row.submitted, "waits")
        writer.end(track, began + (end if row.started is None else row.started))
    if row.started is not None:
        writer.begin(track, began + row.started, "runs")
        writer.end(track, began + end)
    writer.end(track, began + end)


def _draw_curves(writer: PerfettoWriter, group: int, found: Measures) -> None:
    for series in found.series:
        if series.what in CURVES and series.queue:
            curve = writer.counter(f"{series.queue}: {series.resource} {series.what}", group)
            before: float | None = None
            for start, value in zip(found.starts_s, series.values, strict=True):
                if value != before:
                    writer.value(curve, found.began + start, value)
                before = value
