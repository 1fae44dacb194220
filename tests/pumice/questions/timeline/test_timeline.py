"""A trace holds every pod as a slice on its node, every job on its queue, and an arrow from each eviction."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from pumice.core.messages.decisions import Evict
from pumice.core.messages.events import ActorCrashed, ActorStarted, Evicted
from pumice.questions.timeline.perfetto import PerfettoWriter
from pumice.questions.timeline.timeline import Lanes, draw
from pumice.storage import codec
from pumice.storage.journal import ACTOR, DECISION, OUTCOME, Record
from pumice.storage.memory import MemoryJournal
from tests.kit import gang, node, queue
from tests.kit.jobs import job_task, vcjob
from tests.kit.nodes import nodes
from tests.kit.priority_classes import priority_class
from tests.kit.recorded import BEGAN, api, on
from tests.pumice.cli.terminal import pumice

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
        self.packets = trace.packet
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


def test_what_is_written_is_a_valid_trace(trace: Trace) -> None:
    assert check(trace.packets) == {"slices": 10, "arrows": 1}


PREEMPTS = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: nodeorder}]
"""


@pytest.mark.slow
def test_a_run_with_evictions_is_a_valid_trace(tmp_path: Path) -> None:
    """Twelve pods fill three nodes; four that matter more come, twice, and what made room for them comes again."""
    objects = [*nodes(3, cpu="4"), priority_class("low", 1), priority_class("high", 9)]
    objects += [
        vcjob(f"low-{at}", job_task("a", replicas=6, duration="40s"), priority_class="low", min_available=1)
        for at in range(2)
    ]
    for second in (5, 15):
        late = vcjob(f"high-{second}", job_task("a", replicas=4, duration="10s"), priority_class="high")
        late["metadata"]["annotations"] = {"pumice.dev/arrival": f"{second}s"}
        objects.append(late)
    (tmp_path / "c.yaml").write_text(yaml.safe_dump_all(objects))
    (tmp_path / "c.conf").write_text(PREEMPTS)
    db, out = tmp_path / "j.db", tmp_path / "t.perfetto-trace"
    run = ("run", "-f", tmp_path / "c.yaml", "--config", tmp_path / "c.conf", "--db", db, "--time", "virtual")
    assert pumice(*run, "--until", "120s").code == 0
    assert pumice("timeline", db, "-o", out).code == 0
    found = protos.Trace()
    found.ParseFromString(out.read_bytes())
    told = check(found.packet)
    assert told["arrows"] >= 4
    assert told["slices"] >= 20


def check(packets: Any) -> dict[str, int]:
    """By the rules of Perfetto's importer: time never goes back on a track; what begins on it ends on it, the inner
    before the outer; a track is described before it is used, its parent before it; an arrow ends once, and not before
    it began.
    """
    described, stacks, curves = set[int](), dict[int, list[int]](), set[int]()
    begun, ended, last = dict[int, int](), dict[int, int](), dict[int, int]()
    slices = 0
    for packet in packets:
        assert packet.trusted_packet_sequence_id == 1
        if packet.HasField("track_descriptor"):
            of = packet.track_descriptor
            assert of.uuid, "0 is the importer's own"
            assert of.uuid not in described
            assert not of.parent_uuid or of.parent_uuid in described
            described.add(of.uuid)
            if of.HasField("counter"):
                curves.add(of.uuid)
            continue
        event, at = packet.track_event, packet.timestamp
        assert event.track_uuid in described
        assert at >= last.get(event.track_uuid, 0), "time goes back on a track"
        last[event.track_uuid] = at
        assert (event.type == event.TYPE_COUNTER) == (event.track_uuid in curves)
        if event.type == event.TYPE_SLICE_BEGIN:
            assert event.name
            stacks.setdefault(event.track_uuid, []).append(at)
        elif event.type == event.TYPE_SLICE_END:
            slices += 1
            assert stacks[event.track_uuid].pop() <= at
        begun.update(dict.fromkeys(event.flow_ids, at))
        for flow in event.terminating_flow_ids:
            assert flow not in ended
            ended[flow] = at
    assert not any(stacks.values()), "a slice that never ends"
    assert begun.keys() >= ended.keys()
    assert all(begun[flow] <= at for flow, at in ended.items())
    return {"slices": slices, "arrows": len(ended)}
