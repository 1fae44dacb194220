# SPDX-License-Identifier: Apache-2.0
"""The latest changes of one kind, for all its watchers.

Each change is decoded and encoded once, however many watch. A watcher keeps a position; one that falls behind the end
of the ring gets an error and lists again. So memory is bounded by the ring and by one chunk a watcher.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final
from weakref import WeakValueDictionary

from pumice.actors.gateway.request.selection import Traits, traits_in
from pumice.actors.gateway.watch_events import EventFormat
from pumice.actors.runtime.level_signal import LevelSignal
from pumice.core.objects.metadata import Object
from pumice.storage import codec

CHUNK: Final = 64 * 1024
"""Bytes of events that are sent in one batch, about."""
MOST: Final = 200
"""Events that are sent in one batch."""


class RingEntry:
    """One change of the object with this `key`, namespace and name. `old`: its bytes before, None if it did not exist.

    What selectors see of it is found out when a watch with a selector asks: most changes have no such reader.
    """

    __slots__ = ("_format", "_selectable", "_written", "blob", "key", "kind", "old", "revision", "type")

    def __init__(
        self,
        revision: int,
        type_: str,
        kind: str,
        key: tuple[str, str],
        blob: bytes,
        old: bytes | None = None,
        selectable: tuple[str, ...] = (),
    ) -> None:
        self.revision = revision
        self.type = type_
        self.kind = kind
        self.key = key
        self.blob = blob
        self.old = old
        self._selectable = selectable
        self._format: EventFormat | None = None
        self._written = b""

    @property
    def before(self) -> Traits | None:
        """Return the selectors' view of the object before the change; None when it did not exist."""
        return None if self.old is None else traits_in(self.kind, self._selectable, self.old)

    @property
    def after(self) -> Traits | None:
        """Return the selectors' view of the object after the change; None when it was deleted."""
        return None if self.type == "DELETED" else traits_in(self.kind, self._selectable, self.blob)

    @property
    def size(self) -> int:
        """Return the approximate bytes that it holds: MessagePack, an event once a client has asked for it, and
        itself.
        """
        # JSON is about half as long again as MessagePack, and an entry that is read holds both.
        return len(self.blob) * 5 // 2 + 400

    def obj(self) -> Object:
        """Return the object after the change (before it, when DELETED), under the revision of the change."""
        obj: Object = codec.unpack(self.blob)
        if self.type == "DELETED":
            obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.revision)}
        return obj

    def event(self, events: EventFormat) -> bytes:
        """Return the event as watchers of everything see it."""
        # In the newest format alone: `JoinedEvents` spares most watches of another one this look.
        if self._format is not events:
            self._written, self._format = events.write(self.type, self.obj()), events
        return self._written


class JoinedEvents:
    """The events of entries as watchers of everything see them, joined once for all watchers at one position."""

    def __init__(self) -> None:
        self._newest: dict[EventFormat, tuple[int, int, bytes]] = {}

    def of(self, position: int, entries: list[RingEntry], events: EventFormat) -> bytes:
        """Return the bytes of entries that were read from a position on."""
        key = (position, len(entries))
        newest = self._newest.get(events)
        # Hundreds of watchers wake at one position: the first joins the bytes for all of them.
        if newest is None or newest[:2] != key:
            newest = self._newest[events] = (*key, b"".join([entry.event(events) for entry in entries]))
        return newest[2]


class Ring:
    """Entries by position, counted from the beginning of the gateway. `oldest`: a watch can begin from it on."""

    def __init__(self, oldest: int, most: int) -> None:
        self.oldest = oldest
        self.news = LevelSignal()
        self.bytes = 0
        self._most = most
        self._first = 0
        self._entries: list[RingEntry] = []
        self._parts: WeakValueDictionary[str, RingPart] = WeakValueDictionary()
        self._touched: set[str] = set()
        self.joined = JoinedEvents()

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> tuple[RingEntry, ...]:
        """Return all that it holds, the oldest first."""
        return tuple(self._entries)

    @property
    def end(self) -> int:
        """Return the position after the newest entry."""
        return self._first + len(self._entries)

    def part(self, namespace: str) -> RingPart:
        """Return the part of one namespace; it lives as long as a caller holds it."""
        part = self._parts.get(namespace)
        if part is None:
            # Weakly held: a namespace without watchers costs nothing at each change.
            part = self._parts[namespace] = RingPart(self)
            for position, entry in enumerate(self._entries, start=self._first):
                if entry.key[0] == namespace:
                    part.append(position, entry)
        return part

    def append(self, entry: RingEntry) -> None:
        """Add a change; the oldest go when there are too many."""
        namespace = entry.key[0]
        if (part := self._parts.get(namespace)) is not None:
            part.append(self.end, entry)
            self._touched.add(namespace)
        self._entries.append(entry)
        self.bytes += entry.size
        # A quarter at a time: deleting from the front of a list moves all the rest.
        if len(self._entries) > self._most + self._most // 4:
            self.shrink(self._most)

    def shrink(self, left: int) -> None:
        """Keep only so many of the newest."""
        cut = len(self._entries) - left
        if cut > 0:
            # A watch from just this revision misses nothing yet; one from before it gets 410, as from etcd after
            # compaction.
            self.oldest = self._entries[cut - 1].revision
            self._first += cut
            del self._entries[:cut]
            for part in self._parts.values():
                part.cut(self._first)
            self.bytes = sum(entry.size for entry in self._entries)

    def reset(self, revision: int) -> None:
        """Reset after a missed change: every watcher must list again."""
        self._first = self.end + 1  # no position before this one is good any more
        self._entries.clear()
        self.bytes = 0
        self.oldest = revision
        self.news.raise_to(self.end)
        for part in self._parts.values():
            part.reset(self.end)

    def publish(self) -> int:
        """Wake the waiters for the appended changes, and return their number."""
        woken = self.news.waiting
        self.news.raise_to(self.end)
        for namespace in self._touched:
            if (part := self._parts.get(namespace)) is not None:
                woken += part.news.waiting
                part.publish()
        self._touched.clear()
        return woken

    def position(self, revision: int) -> int | None:
        """Return the position of the first entry newer than a revision; None when the ring no longer reaches back so
        far."""
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

    def before(self, changes: int) -> int | None:
        """Return the revision at which the last so many changes were yet to come, as far as the ring reaches back; None
        without any."""
        if not self._entries:
            return None
        return max(self._entries[-min(changes, len(self._entries))].revision - 1, self.oldest)

    def read(self, position: int) -> tuple[list[RingEntry], int] | None:
        """Return the next entries from a position on, at most a chunk, and the position after them; None when they are
        gone.
        """
        start = position - self._first
        if start < 0:
            return None
        found = _a_chunk(self._entries[start : start + MOST])
        return found, position + len(found)


class RingPart:
    """The entries of a ring in one namespace, for its watchers: a change elsewhere wakes none of them, and entries of
    other namespaces that fall off the ring do not matter to them.

    Positions are the ring's. It is the ring that fills it.
    """

    def __init__(self, ring: Ring) -> None:
        self.news = LevelSignal()
        self.joined = JoinedEvents()
        self._ring = ring
        self._gone = 0
        self._positions: list[int] = []
        self._entries: list[RingEntry] = []

    def append(self, position: int, entry: RingEntry) -> None:
        """Append a change with its place in the ring."""
        self._positions.append(position)
        self._entries.append(entry)

    def cut(self, first: int) -> None:
        """Note where the ring begins now."""
        number = bisect_left(self._positions, first)
        if number:
            # Only what was of this namespace: a watcher of a quiet namespace outlives any number of changes elsewhere.
            self._gone = self._positions[number - 1] + 1
            del self._positions[:number], self._entries[:number]

    def reset(self, first: int) -> None:
        """Reset after a missed change: everything read before this position is out of date."""
        self._gone = first
        self._positions.clear()
        self._entries.clear()
        # Wakes the watchers so that they find their place gone and say so, rather than wait for ever.
        self.news.raise_to(first)

    def publish(self) -> None:
        """Wake the waiters for the appended changes."""
        if self._positions:
            self.news.raise_to(self._positions[-1] + 1)

    def read(self, position: int) -> tuple[list[RingEntry], int] | None:
        """Return the next entries of this namespace from a position on, at most a chunk, and the position after them,
        which is the ring's end when none is left; None when they are gone.
        """
        if position < self._gone:
            return None
        start = bisect_left(self._positions, position)
        found = _a_chunk(self._entries[start : start + MOST])
        rest = start + len(found) < len(self._positions)
        return found, self._positions[start + len(found)] if rest else max(position, self._ring.end)


def _a_chunk(entries: list[RingEntry]) -> list[RingEntry]:
    """Return the first entries that are sent together."""
    return entries[: len(first_of([entry.blob for entry in entries], CHUNK))]


def first_of(blobs: Sequence[bytes], most: int) -> Sequence[bytes]:
    """Return the first blobs, up to the one with which they have more than `most` bytes."""
    size = 0
    for number, blob in enumerate(blobs, start=1):
        size += len(blob)
        if size > most:
            return blobs[:number]
    return blobs
