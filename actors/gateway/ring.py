"""The latest changes of one kind, for all who watch it.

Each change is decoded and encoded once, however many watch. A watcher keeps a position; one that falls behind the end
of the ring is told so and lists again. So memory is bounded by the ring and by one chunk a watcher.
"""

from __future__ import annotations

from typing import Any, Final, cast

from actors.gateway.forms import encode
from actors.gateway.request.selection import Traits
from actors.runtime.level_signal import LevelSignal
from core.objects.metadata import Object
from storage import codec

CHUNK: Final = 64 * 1024
"""Bytes of events that are sent at once, about."""
MOST: Final = 200
"""Events that are sent at once."""


class RingEntry:
    """One change. `before` and `after` are the object's traits; None: it was not, or is no longer, there."""

    __slots__ = ("_line", "after", "before", "blob", "revision", "type")

    def __init__(self, revision: int, type_: str, blob: bytes, before: Traits | None, after: Traits | None) -> None:
        self.revision = revision
        self.type = type_
        self.blob = blob
        self.before = before
        self.after = after
        self._line: bytes | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name of the object."""
        traits = self.after or self.before
        return (traits.namespace, traits.name) if traits else ("", "")

    @property
    def size(self) -> int:
        """Bytes that it holds, about: MessagePack, JSON once somebody has asked for it, and itself."""
        return len(self.blob) * 5 // 2 + 400

    def obj(self) -> Object:
        """The object after the change (before it, when DELETED), under the revision of the change."""
        obj = cast("Object", codec.unpack(self.blob))
        if self.type == "DELETED":
            obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.revision)}
        return obj

    def line(self) -> bytes:
        """The event as those see it who watch everything."""
        if self._line is None:
            self._line = event_line(self.type, self.obj())
        return self._line


def event_line(type_: str, obj: Any) -> bytes:
    """One event of a watch stream."""
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), encode(obj))


class Ring:
    """Entries by position, counted from the beginning of the gateway. `oldest`: watching is possible from it on."""

    def __init__(self, oldest: int, most: int) -> None:
        self.oldest = oldest
        self.news = LevelSignal()
        self.bytes = 0
        self._most = most
        self._first = 0
        self._entries: list[RingEntry] = []
        self._chunk: tuple[int, int, bytes] = (-1, -1, b"")

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> tuple[RingEntry, ...]:
        """All that it holds, the oldest first."""
        return tuple(self._entries)

    @property
    def end(self) -> int:
        """The position after the newest entry."""
        return self._first + len(self._entries)

    def append(self, entry: RingEntry) -> None:
        """Add a change; the oldest go when there are too many."""
        self._entries.append(entry)
        self.bytes += entry.size
        if len(self._entries) > self._most + self._most // 4:
            self.shrink(self._most)

    def shrink(self, left: int) -> None:
        """Keep only so many of the newest."""
        cut = len(self._entries) - left
        if cut > 0:
            self.oldest = self._entries[cut - 1].revision
            self._first += cut
            del self._entries[:cut]
            self.bytes = sum(entry.size for entry in self._entries)

    def reset(self, revision: int) -> None:
        """Something was missed: whoever watches has to list again."""
        self._first = self.end + 1  # no position before this one is good any more
        self._entries.clear()
        self.bytes = 0
        self.oldest = revision
        self.news.raise_to(self.end)

    def publish(self) -> None:
        """Wake who waits for what was appended."""
        self.news.raise_to(self.end)

    def position(self, revision: int) -> int | None:
        """Where what is newer than a revision begins; None when it reaches back no longer."""
        if revision < self.oldest:
            return None
        low, high = 0, len(self._entries)
        while low < high:
            middle = (low + high) // 2
            if self._entries[middle].revision <= revision:
                low = middle + 1
            else:
                high = middle
        return self._first + low

    def read(self, position: int) -> list[RingEntry] | None:
        """The next entries from a position on, a chunk at most; None when they are gone."""
        start = position - self._first
        if start < 0:
            return None
        found: list[RingEntry] = []
        size = 0
        for entry in self._entries[start : start + MOST]:
            found.append(entry)
            size += len(entry.blob)
            if size > CHUNK:
                break
        return found

    def lines(self, position: int, entries: list[RingEntry]) -> bytes:
        """The events of what `read` gave, as those see it who watch everything: joined once for all at one position."""
        key = (position, len(entries))
        if self._chunk[:2] != key:
            self._chunk = (*key, b"".join([entry.line() for entry in entries]))
        return self._chunk[2]
