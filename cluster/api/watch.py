# SPDX-License-Identifier: Apache-2.0
"""The revision log: the latest changes in order, from which watchers pull.

Bounded: a watcher that asks for a dropped change gets 410 (Gone) and lists again, so a slow watcher costs
the other watchers nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from pumice.core.messages.events import Mutation

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

# --- NewestRevisions: the newest revision of each set of kinds


class NewestRevisions:
    """The newest revisions. `newest`: the newest revision that watchers may see."""

    def __init__(self, newest: int = 0) -> None:
        self.newest = newest
        self._of: dict[tuple[str, ...], int] = {}
        self._asking: dict[str, list[tuple[str, ...]]] = {}

    def published(self, revision: int, changed: AbstractSet[str] | None = None) -> None:
        """Note that watchers may see everything up to `revision`; `changed` are kinds and parts of them (None: perhaps
        all).

        A revision that is not newer changes nothing.
        """
        if revision > self.newest:
            self.newest = revision
            if changed is None:
                # the changed kinds are not known: every set counts as changed, and its watchers look for themselves
                self._of = dict.fromkeys(self._of, revision)
                return
            for topic in changed:
                for kinds in self._asking.get(topic, ()):
                    self._of[kinds] = revision

    def of(self, kinds: tuple[str, ...]) -> int:
        """Return the newest revision at which something of these kinds may have changed; () means all kinds."""
        if kinds and kinds not in self._of:
            # a set of kinds is followed from its first question on: a change then touches only sets that are watched
            self._of[kinds] = self.newest
            for topic in kinds:
                self._asking.setdefault(topic, []).append(kinds)
        return self._of[kinds] if kinds else self.newest


_SCAN: Final = 8192
"""Entries looked at in one call at most, so that a watcher of a rare kind cannot hold the loop for long."""

_REVISION: Final = attrgetter("revision")
_BYTES: Final = 32 << 20
"""Bytes of the objects in a log, at most: an object that is written again and again may have 1.5 MB each time."""


class Events(Struct, frozen=True):
    """Changes in revision order. A watcher continues from `revision`.

    `gone` (410): the log no longer reaches back that far; the watcher must list again. `more`: the limit cut it.
    """

    revision: int
    events: tuple[Mutation, ...] = ()
    gone: bool = False
    more: bool = False


class ChangeLog(Protocol):
    """The api's changes in order, as watchers read them."""

    def read(self, since: int, kinds: tuple[str, ...] = (), limit: int = 1000) -> Events:
        """Return published changes after `since` of these kinds, or parts of them (all when empty), at most `limit`.

        Raises ActorFailedError when the way to the api is broken.
        """
        ...

    def head(self, kinds: tuple[str, ...]) -> int:
        """Return the newest published revision at which something of these kinds may have changed."""
        ...


class RevisionLog:
    """Changes by rising revision, at most so many, and of so many bytes. Readers see only published ones, which are
    durable.
    """

    def __init__(self, capacity: int = 32_768, revision: int = 0, most_bytes: int = _BYTES) -> None:
        self._capacity = capacity
        self._most_bytes, self._bytes = most_bytes, 0
        # the list grows by a quarter before its beginning is cut off: one cut serves so many appends
        self._spare = capacity // 4 + 1
        self._room = capacity + self._spare
        self._entries: list[Mutation] = []
        self._concerned: list[frozenset[str]] = []
        self._shown = 0  # so many of them are published
        self._dropped_to = revision
        # two bounds: what was dropped for room is known by topic, what was forgotten is not
        self._forgotten_to = revision
        self._last_dropped: dict[str, int] = {}
        self._newest = NewestRevisions(revision)
        self._asked = _AskedByKinds()

    @property
    def published(self) -> int:
        """Return the newest revision that watchers may see."""
        return self._newest.newest

    def head(self, kinds: tuple[str, ...]) -> int:
        """Return the newest published revision at which something of these kinds may have changed."""
        return self._newest.of(kinds)

    @property
    def oldest(self) -> int:
        """Return the revision from which every watch can still begin."""
        return self._dropped_to

    def append(self, event: Mutation, concerned: frozenset[str]) -> None:
        """Add a change to the log of its kind and some of its parts; its revision is above every earlier one."""
        self._entries.append(event)
        self._concerned.append(concerned)
        self._room -= 1
        self._bytes += len(event.blob)
        if self._room < 0:  # in bulk, so that an append costs the same whatever the capacity
            self._drop(len(self._entries) - self._capacity)
        elif self._bytes > self._most_bytes:
            self._drop(self._too_large())

    def _too_large(self) -> int:
        """Return how many of the oldest have to go until a quarter of the bytes is free; the newest stays."""
        left, cut = self._bytes, 0
        while left > self._most_bytes * 3 // 4 and cut < len(self._entries) - 1:
            left -= len(self._entries[cut].blob)
            cut += 1
        return cut

    def _drop(self, cut: int) -> None:
        if not cut:
            return
        for event, concerned in zip(self._entries[:cut], self._concerned[:cut], strict=True):
            for topic in concerned:
                # by topic: a watcher whose kinds lost nothing need not list again
                self._last_dropped[topic] = event.revision
        self._dropped_to = self._entries[cut - 1].revision
        self._bytes -= sum([len(event.blob) for event in self._entries[:cut]])
        del self._entries[:cut], self._concerned[:cut]
        self._room = self._capacity + self._spare - len(self._entries)
        self._shown = max(self._shown - cut, 0)

    def publish(self, revision: int) -> set[str]:
        """Let watchers see everything up to `revision`, and return the kinds, and parts of them, that it affects."""
        before, shown = self.published, self._shown
        self._shown = max(shown, self._position(revision))
        fresh = self._concerned[shown : self._shown]
        # what was dropped before it was published is news, too: its watchers have to hear that it is gone
        dropped = [topic for topic, last in self._last_dropped.items() if last > before]
        # few different sets of topics occur: they are joined once each, however many changes there are
        changed = set(dropped).union(*set(fresh))
        self._newest.published(revision, changed)
        return changed

    def forget_all(self, revision: int) -> None:
        """Drop every entry, as if all up to `revision` had been compacted."""
        self._entries.clear()
        self._concerned.clear()
        self._shown = self._bytes = 0
        self._last_dropped.clear()
        self._room = self._capacity + self._spare
        self._dropped_to = self._forgotten_to = revision
        self._newest = NewestRevisions(revision)

    def read(self, since: int, kinds: tuple[str, ...] = (), limit: int = 1000) -> Events:
        """Return published changes after `since` of these kinds, or parts of them (all when empty), at most `limit`."""
        published = self.published
        if since > published or (since < self._dropped_to and self._is_gone(since, kinds)):
            return Events(published, gone=True)
        start, end = self._position(since), self._shown
        cut = end if end - start <= _SCAN else start + _SCAN
        found = self._entries[start:cut]
        if kinds:
            found = [*compress(found, map(self._asked[kinds].__getitem__, self._concerned[start:cut]))]
        if len(found) > limit:
            return Events(found[limit - 1].revision, tuple(found[:limit]), more=True)
        # the reader goes on behind the last entry looked at, even if none was of its kinds
        if cut < end:
            return Events(self._entries[cut - 1].revision, tuple(found), more=True)
        return Events(published, tuple(found))

    def _is_gone(self, since: int, kinds: tuple[str, ...]) -> bool:
        """Return whether a dropped change after `since` concerned these kinds; watchers of others missed nothing."""
        dropped = self._last_dropped
        return not kinds or since < self._forgotten_to or any(dropped.get(kind, 0) > since for kind in kinds)

    def _position(self, since: int) -> int:
        """Return the index of the first entry after `since`; revisions may have gaps, so it is searched."""
        entries = self._entries
        if not entries or since < entries[0].revision:
            return 0
        place = since - entries[0].revision  # of the entry of this revision, revisions have no gaps
        if place < len(entries) and entries[place].revision == since:
            return place + 1
        return bisect_right(entries, since, key=_REVISION)


class _Asked(dict[frozenset[str], bool]):
    """Cached test whether one of `kinds` is among those that a change concerns; few sets occur."""

    def __init__(self, kinds: tuple[str, ...]) -> None:
        super().__init__()
        self._kinds = kinds

    def __missing__(self, concerned: frozenset[str]) -> bool:
        asked = self[concerned] = not concerned.isdisjoint(self._kinds)
        return asked


class _AskedByKinds(dict[tuple[str, ...], _Asked]):
    """Cache of these tests by kinds: a watcher asks for the same kinds every time."""

    def __missing__(self, kinds: tuple[str, ...]) -> _Asked:
        asked = self[kinds] = _Asked(kinds)
        return asked
