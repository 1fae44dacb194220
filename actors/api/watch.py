"""The revision log: the latest changes in order, from which watchers pull.

Bounded: who asks for what has fallen off the end is told that it is gone (410) and lists again, so a slow watcher costs
nobody else anything.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import Final

from core.messages.replies import Events, WatchEvent

_SCAN: Final = 8192
"""Entries looked at in one call at most, so that a watcher of a rare kind cannot hold the loop for long."""

_REVISION: Final = attrgetter("revision")


class RevisionLog:
    """Changes by rising revision. Readers see only what was published: what is not durable yet is not news."""

    def __init__(self, capacity: int = 32_768, revision: int = 0) -> None:
        self._capacity = capacity
        self._entries: list[WatchEvent] = []
        self._dropped_to = revision
        self._published = revision

    @property
    def published(self) -> int:
        """The newest revision that watchers may see."""
        return self._published

    @property
    def oldest(self) -> int:
        """Watching from here on is possible; from any earlier revision it is gone."""
        return self._dropped_to

    def append(self, event: WatchEvent) -> None:
        """Add a change; its revision must be above every earlier one."""
        self._entries.append(event)
        # in bulk, so that an append costs the same whatever the capacity
        if len(self._entries) > self._capacity + self._capacity // 4 + 1:
            cut = len(self._entries) - self._capacity
            self._dropped_to = self._entries[cut - 1].revision
            del self._entries[:cut]

    def publish(self, revision: int) -> None:
        """Let watchers see everything up to `revision`."""
        self._published = max(self._published, revision)

    def forget_all(self, revision: int) -> None:
        """Drop every entry, as if all up to `revision` had been compacted."""
        self._entries.clear()
        self._dropped_to = revision
        self._published = revision

    def read(self, since: int, kinds: tuple[str, ...] = (), limit: int = 1000) -> Events:
        """Published changes after `since` of the named kinds (all when empty), at most `limit`."""
        if since < self._dropped_to or since > self._published:
            return Events(self._published, gone=True)
        start, end = self._position(since), self._position(self._published)
        found: list[WatchEvent] = []
        seen = since
        for entry in self._entries[start : min(start + _SCAN, end)]:
            if not kinds or entry.kind in kinds:
                if len(found) == limit:
                    return Events(seen, tuple(found), more=True)
                found.append(entry)
            seen = entry.revision
        if start + _SCAN < end:
            return Events(seen, tuple(found), more=True)
        return Events(max(seen, self._published), tuple(found))

    def _position(self, since: int) -> int:
        """Index of the first entry after `since`; revisions may have gaps, so it is searched."""
        return bisect_right(self._entries, since, key=_REVISION)
