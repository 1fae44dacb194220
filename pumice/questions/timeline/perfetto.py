# SPDX-License-Identifier: Apache-2.0
"""Writing Perfetto's own format: a protobuf of packets, each a track or an event on one, appended as they come.

The messages are those of the package `perfetto` (`pumice[timeline]`). Source of the format:
https://perfetto.dev/docs/reference/synthetic-track-event
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, Final

from pumice.errors import demand

if TYPE_CHECKING:
    from collections.abc import Mapping

SEQUENCE: Final = 1
"""All packets are of one sequence: one writer, one clock."""
NANOSECONDS: Final = 1_000_000_000


class PerfettoWriter:
    """Tracks are numbers, given by `process`, `track` and `counter`. Times are seconds since the epoch."""

    def __init__(self, file: BinaryIO) -> None:
        self._protos = demand("perfetto.protos.perfetto.trace.perfetto_trace_pb2", "timeline", "Timelines")
        self._events = self._protos.TrackEvent
        self._file = file
        self._last = 0

    def process(self, name: str, order: int) -> int:
        """Return a group of tracks, drawn as a process; lower orders stand higher."""
        descriptor = self._descriptor()
        descriptor.process.pid = descriptor.uuid
        descriptor.process.process_name = name
        descriptor.sibling_order_rank = order
        return self._write_descriptor(descriptor)

    def track(self, name: str, parent: int, order: int = 0) -> int:
        """Return a track below another one."""
        descriptor = self._descriptor()
        descriptor.name, descriptor.parent_uuid, descriptor.sibling_order_rank = name, parent, order
        return self._write_descriptor(descriptor)

    def counter(self, name: str, parent: int, unit: str = "") -> int:
        """Return a track that holds a curve."""
        descriptor = self._descriptor()
        descriptor.name, descriptor.parent_uuid = name, parent
        descriptor.counter.unit_name = unit
        return self._write_descriptor(descriptor)

    def begin(
        self, track: int, at: float, name: str, notes: Mapping[str, Any] | None = None, *, ends_flow: int = 0
    ) -> None:
        """Begin a slice; `ends_flow` is the number of an arrow that points at it."""
        packet = self._event(track, at, self._events.TYPE_SLICE_BEGIN, name, notes)
        if ends_flow:
            packet.track_event.terminating_flow_ids.append(ends_flow)
        self._write(packet)

    def end(self, track: int, at: float) -> None:
        """End the innermost slice of the track."""
        self._write(self._event(track, at, self._events.TYPE_SLICE_END))

    def instant(
        self, track: int, at: float, name: str, notes: Mapping[str, Any] | None = None, *, begins_flow: int = 0
    ) -> None:
        """Mark an event of no length; `begins_flow` is the number of an arrow that begins here."""
        packet = self._event(track, at, self._events.TYPE_INSTANT, name, notes)
        if begins_flow:
            packet.track_event.flow_ids.append(begins_flow)
        self._write(packet)

    def value(self, counter: int, at: float, value: float) -> None:
        """Set a curve's value from now on."""
        packet = self._event(counter, at, self._events.TYPE_COUNTER)
        packet.track_event.double_counter_value = value
        self._write(packet)

    def _event(self, track: int, at: float, kind: int, name: str = "", notes: Mapping[str, Any] | None = None) -> Any:
        packet = self._protos.TracePacket()
        packet.timestamp = round(at * 1000) * (NANOSECONDS // 1000)  # a float of today's seconds has no nanoseconds
        packet.trusted_packet_sequence_id = SEQUENCE
        event = packet.track_event
        event.type, event.track_uuid = kind, track
        if name:
            event.name = name
        for key, value in (notes or {}).items():
            note = event.debug_annotations.add()
            note.name = key
            if isinstance(value, float | int):
                note.double_value = float(value)
            else:
                note.string_value = str(value)
        return packet

    def _descriptor(self) -> Any:
        self._last += 1
        descriptor = self._protos.TrackDescriptor()
        descriptor.uuid = self._last
        return descriptor

    def _write_descriptor(self, descriptor: Any) -> int:
        packet = self._protos.TracePacket()
        packet.trusted_packet_sequence_id = SEQUENCE
        packet.track_descriptor.CopyFrom(descriptor)
        self._write(packet)
        return int(descriptor.uuid)

    def _write(self, packet: object) -> None:
        """Write a packet as a trace of one: traces may be joined end to end."""
        self._file.write(self._protos.Trace(packet=[packet]).SerializeToString())
