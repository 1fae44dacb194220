# SPDX-License-Identifier: Apache-2.0
"""Events of a watch as bytes: lines of JSON, or frames of protobuf (`apimachinery/pkg/util/framer`)."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from pumice.actors.gateway.forms import encode
from pumice.actors.gateway.protobuf import reading, writing
from pumice.actors.gateway.request.negotiation import PROTOBUF
from pumice.core.objects.metadata import Object

_BOOKMARK: Final = "BOOKMARK"


class EventFormat(Protocol):
    """Bytes of events. Each event ends where the next begins, so that several can be sent together."""

    def write(self, type_: str, obj: Object) -> bytes:
        """Return one event."""
        ...

    def split(self, part: bytes) -> list[bytes]:
        """Return the events of a part that holds whole ones."""
        ...

    def revision(self, event: bytes) -> int:
        """Return the resourceVersion of an event; 0 where it has none."""
        ...

    def is_bookmark(self, event: bytes) -> bool:
        """Return whether an event says only how far the watch has come."""
        ...

    def frames(self, part: bytes, _subprotocol: str) -> list[str | bytes]:
        """Return the frames of a WebSocket, one an event."""
        ...


class _Meta(msgspec.Struct):
    resourceVersion: str = "0"  # noqa: N815 - the key of Kubernetes


class _Shown(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _Event(msgspec.Struct):
    object: _Shown = msgspec.field(default_factory=_Shown)


_EVENT: Final = msgspec.json.Decoder(_Event)


class JsonEvents:
    """One JSON object a line."""

    def write(self, type_: str, obj: Object) -> bytes:
        """Return one event."""
        return b'{"type":"%s","object":%s}\n' % (type_.encode(), encode(obj))

    def split(self, part: bytes) -> list[bytes]:
        """Return the events of a part that holds whole ones."""
        return part.splitlines(keepends=True)

    def revision(self, event: bytes) -> int:
        """Return the resourceVersion of an event; 0 where it has none, as a table."""
        try:
            return int(_EVENT.decode(event).object.metadata.resourceVersion)
        except (msgspec.MsgspecError, ValueError):
            return 0

    def is_bookmark(self, event: bytes) -> bool:
        """Return whether an event says only how far the watch has come."""
        return event.startswith(b'{"type":"%s"' % _BOOKMARK.encode())

    def frames(self, part: bytes, _subprotocol: str) -> list[str | bytes]:
        """Return one text frame an event."""
        return [line.decode() for line in self.split(part)]


class ProtobufEvents:
    """meta.v1.WatchEvent after its length in four bytes. Only the object in it has the envelope."""

    def write(self, type_: str, obj: Object) -> bytes:
        """Return one event. Raises ApiError (406) for an object that cannot be written."""
        event = writing.field(1, type_.encode()) + writing.field(2, writing.field(1, writing.encode(obj)))
        return len(event).to_bytes(_LENGTH) + event

    def split(self, part: bytes) -> list[bytes]:
        """Return the events of a part that holds whole ones."""
        found: list[bytes] = []
        at = 0
        while at < len(part):
            end = at + _LENGTH + int.from_bytes(part[at : at + _LENGTH])
            found.append(part[at:end])
            at = end
        return found

    def revision(self, event: bytes) -> int:
        """Return the resourceVersion of an event; 0 where it has none."""
        # RawExtension, the object in its envelope, its metadata.
        shown = reading.inside(event[_LENGTH:], 2, 1)
        version = reading.inside(reading.object_in(shown), 1, 6) if shown else b""
        return int(version) if version.isdigit() else 0

    def is_bookmark(self, event: bytes) -> bool:
        """Return whether an event says only how far the watch has come."""
        return event[_LENGTH:].startswith(writing.field(1, _BOOKMARK.encode()))

    def frames(self, part: bytes, _subprotocol: str) -> list[str | bytes]:
        """Return one binary frame an event, without its length: the frame has one."""
        return [event[_LENGTH:] for event in self.split(part)]


_LENGTH: Final = 4
JSON_EVENTS: Final = JsonEvents()
PROTOBUF_EVENTS: Final = ProtobufEvents()
STREAM: Final = f"{PROTOBUF};stream=watch"


def format_of(media: str) -> tuple[EventFormat, str]:
    """Return the format for a media type (or for that of a watch), and the media type of the watch."""
    return (PROTOBUF_EVENTS, STREAM) if media.startswith(PROTOBUF) else (JSON_EVENTS, media)
