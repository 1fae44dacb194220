"""A trace holds every pod as a slice on its node, every job on its queue, and an arrow from each eviction."""

from __future__ import annotations

import io
from typing import Any

import anyio
import pytest

from core.messages.decisions import Evict
from core.messages.events import ActorCrashed, ActorStarted, Evicted
from pumice.timeline.lanes import Lanes
from pumice.timeline.perfetto import PerfettoWriter
from pumice.timeline.timeline import draw
from storage import codec
from storage.journal import ACTOR, DECISION, OUTCOME, Record
from storage.memory import MemoryJournal
from tests.kit import gang, node, queue
from tests.kit.recorded import BEGAN, api, on

protos = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2",
    reason="perfetto is not installed: pip install 'pumice[timeline]'",
)


def records() -> list[Record]:
    """Two pods beside each other; one is evicted for a third, which takes its place; an actor is down for a while."""
    low, first, second = gang("low", pods=2)
    high, third = gang("high", pods=1)
    meta = first["metadata"]
    victim = (meta["namespace"], meta["name"], meta["uid"])
    wins = f"{third['metadata']['namespace']}/{third['metadata']['name']}"
    evict = Evict(*victim, "n0", "", "preempted", wins, "preempt")
    return [
        api(0, node("n0"), "ADDED"),
        api(0, queue("default"), "ADDED"),
        *(api(0, obj, "ADDED") for obj in (low, first, second)),
        *(api(2, on(one, "n0")) for one in (first, second)),
        *(api(4, obj, "ADDED") for obj in (high, third)),
        Record(DECISION, codec.encode(evict), at=BEGAN + 5),
        Record(OUTCOME, codec.encode(Evicted("1/u", 1, *victim)), at=BEGAN + 5),
        Record(ACTOR, codec.encode(ActorCrashed("cache", BEGAN + 5, "boom", 1.0)), at=BEGAN + 5),
        Record(ACTOR, codec.encode(ActorStarted("cache", BEGAN + 6)), at=BEGAN + 6),
        api(7, on(first, "n0"), "DELETED"),
        api(8, on(third, "n0")),
        api(20, on(second, "n0", "Succeeded")),
    ]


class Trace:
    """What a reader of the file would see."""

    def __init__(self, content: bytes) -> None:
        self.names: dict[int, str] = {}
        self.parents: dict[int, int] = {}
        self.events: list[Any] = []
        trace = protos.Trace()
        trace.ParseFromString(content)
        for packet in trace.packet:
            if packet.HasField("track_descriptor"):
                of = packet.track_descriptor
                self.names[of.uuid] = of.name or of.process.process_name
                self.parents[of.uuid] = of.parent_uuid
            else:
                self.events.append(packet)

    def slices(self, group: str) -> list[tuple[str, str, float, float]]:
        """Of one group: track, name, from and to, in seconds after the beginning."""
        found, stacks = list[tuple[str, str, float, float]](), dict[int, list[tuple[str, float]]]()
        for packet in sorted(self.events, key=lambda one: one.timestamp):
            event, at = packet.track_event, packet.timestamp / 1e9 - BEGAN
            if self.group(event.track_uuid) != group:
                continue
            if event.type == protos.TrackEvent.TYPE_SLICE_BEGIN:
                stacks.setdefault(event.track_uuid, []).append((event.name, at))
            elif event.type == protos.TrackEvent.TYPE_SLICE_END:
                name, begun = stacks[event.track_uuid].pop()
                found.append((self.names[event.track_uuid], name, round(begun, 3), round(at, 3)))
        assert not any(stacks.values()), "a slice that never ends"
        return found

    def group(self, track: int) -> str:
        while self.parents[track]:
            track = self.parents[track]
        return self.names[track]


@pytest.fixture(scope="module")
def trace() -> Trace:
    file = io.BytesIO()

    async def drawn() -> None:
        journal = MemoryJournal()
        await journal.append(records())
        await draw(journal, PerfettoWriter(file))

    anyio.run(drawn)
    return Trace(file.getvalue())


def test_pods_are_slices_beside_each_other_and_a_lane_is_used_again(trace: Trace) -> None:
    spans = [(track, begun, ended) for track, _, begun, ended in trace.slices("nodes")]
    assert sorted(spans) == [("n0 0", 2, 7), ("n0 0", 8, 20), ("n0 1", 2, 20)]


def test_an_arrow_leads_from_the_eviction_to_the_pod_it_made_room_for(trace: Trace) -> None:
    begins = [one.track_event for one in trace.events if one.track_event.flow_ids]
    ends = [one.track_event for one in trace.events if one.track_event.terminating_flow_ids]
    assert [list(one.flow_ids) for one in begins] == [list(one.terminating_flow_ids) for one in ends] == [[1]]
    assert begins[0].name.startswith("evict low-")
    assert ends[0].name.startswith("default/high-")


def test_a_job_waits_and_then_runs(trace: Trace) -> None:
    high = {name: (begun, ended) for _, name, begun, ended in trace.slices("queues") if begun >= 4 or "high" in name}
    assert (high["default/high"], high["waits"]) == ((4, 20), (4, 8))


def test_an_actor_is_down_between_its_crash_and_its_start(trace: Trace) -> None:
    assert trace.slices("actors") == [("cache", "down", 5, 6)]


def test_curves_say_what_a_queue_holds(trace: Trace) -> None:
    curve = next(track for track, name in trace.names.items() if name == "default: pods held")
    values = {
        round(one.timestamp / 1e9 - BEGAN): one.track_event.double_counter_value
        for one in trace.events
        if one.track_event.track_uuid == curve
    }
    assert (values[0], values[2], values[7], values[8]) == (0, 2, 1, 2)


def test_a_lane_is_the_lowest_free_one() -> None:
    lanes = Lanes()
    assert [lanes.take() for _ in range(3)] == [0, 1, 2]
    lanes.give_back(1)
    lanes.give_back(0)
    assert [lanes.take() for _ in range(3)] == [0, 1, 3]
