# SPDX-License-Identifier: Apache-2.0
"""Reading of the api's changes: how the cache, the node agents and the controllers watch.

Not an actor but a part of one: it pulls what is newer than its revision, and the api answers when there is something,
so the api never pushes into a full mailbox. Behind the log (410) it lists again and reports what it missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from anyio import lowlevel
from msgspec import Struct

from pumice.actors.errors import ActorFailedError, UnexpectedReplyError
from pumice.actors.runtime.mailbox import expected
from pumice.core.messages.commands import List, Pull, Pulled
from pumice.core.messages.events import Mutation
from pumice.core.messages.replies import Listing
from pumice.core.objects.parts import kind_of
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.actors.runtime.actor import Context
    from pumice.actors.runtime.envelope import Answer
    from pumice.actors.system.ports import ApiPort


AGAIN_S = 0.02
READ = 500
"""Objects of a list that are decoded at a stretch."""


class WatchedChanges(Struct, frozen=True):
    """Changes of one pull. `relisted`: they are all existing objects, and a DELETED for each that vanished.

    `listed`: the revision at which each kind was listed then.
    """

    events: Sequence[Mutation]
    revision: int
    relisted: bool = False
    listed: dict[str, int] = {}


class Watcher:
    """Follows the api's log for one actor, which calls `done` once the changes are handled.

    It pulls, so the api never waits for a slow reader; and after a gap it lists, so no change is missed, only its
    steps.

    `kinds`, one at least, may name parts of kinds (`core.objects.parts`). `since` below 0: it begins with a list.
    """

    def __init__(
        self,
        name: str,
        api: ApiPort,
        context: Context,
        kinds: Sequence[str],
        *,
        since: int = 0,
        limit: int = 1000,
    ) -> None:
        self.name = name
        self._api = api
        self._objects = context.objects
        self._activity = context.activity
        self._limit = limit
        self._watch(kinds, since)

    def _watch(self, kinds: Sequence[str], since: int) -> None:
        self.revision = since
        self._answer: Answer | None = None  # to the newest pull
        self._told_to = since
        self._kinds = tuple(kinds)
        self._whole_kinds = tuple(dict.fromkeys(map(kind_of, kinds)))
        self._has_parts = self._whole_kinds != self._kinds
        self._known: set[tuple[str, str, str]] = set()
        self._activity.seen(self.name, since, self._kinds)

    def turn_to(self, kinds: Sequence[str]) -> None:
        """Watch these kinds from now on, beginning with a list."""
        self._watch(kinds, -1)

    async def next(self) -> WatchedChanges:
        """Wait for news of its kinds and return it; it may contain no events.

        From the news on until it is `done` the watcher is behind, so the board does not take the system for idle.
        """
        while True:
            try:
                return await self._read()
            except ActorFailedError:
                await anyio.sleep(AGAIN_S)  # the api has crashed, or the way to it is broken: it comes back

    async def _read(self) -> WatchedChanges:
        if self.revision < 0:
            return await self._relist()
        found = await self._pulled()
        if found.gone:
            return await self._relist()
        events = self._objects.changes(found.revisions, found.events)
        if events and events[0].revision <= self.revision:  # a watch may be replayed; known changes are skipped
            events = [event for event in events if event.revision > self.revision]
        self._remember(events)
        return WatchedChanges(events, found.revision)

    async def _pulled(self) -> Pulled:
        """Return the next answer of a held pull. The api goes on where its last answer ended; it is asked anew when a
        change has come meanwhile, or when that is not where this watcher is.
        """
        answer, news = self._answer, self._activity.has_news(self.revision, self._kinds)
        if answer is None or answer.over or news or self._told_to != self.revision:
            pull = Pull(self.name, self.revision, self._kinds, self._limit)
            answer = self._answer = await self._api.ask_later(pull)
        else:
            answer.again()
        found = expected(await self._api.answered(answer), Pulled)
        self._told_to = found.revision
        return found

    def done(self, changes: WatchedChanges) -> None:
        """Note that these changes, and every request that followed from them, are handled."""
        self.revision = changes.revision
        self._activity.seen(self.name, changes.revision, self._kinds)

    async def _relist(self) -> WatchedChanges:
        listings = await self._api.ask_many([List(kind) for kind in self._whole_kinds])
        events: list[Mutation] = []
        listed: dict[str, int] = {}
        for kind, listing in zip(self._whole_kinds, listings, strict=True):
            if not isinstance(listing, Listing):
                raise UnexpectedReplyError(f"listing {kind}: {listing!r}")
            listed[kind] = listing.revision
            for start in range(0, len(listing.blobs), READ):
                if start:
                    await lowlevel.checkpoint()
                events.extend([self._as_event(kind, blob) for blob in listing.blobs[start : start + READ]])
        revision = min(listed.values())  # what changes between two of these lists is seen again
        present = {(event.kind, event.namespace, event.name) for event in events}
        # a list does not say what went meanwhile, and readers keep an object until they see its deletion
        vanished = [_vanished(*key, revision) for key in sorted(self._known - present)]
        self._known = present
        return WatchedChanges([*vanished, *events], revision, relisted=True, listed=listed)

    def _as_event(self, kind: str, blob: bytes) -> Mutation:
        metadata = self._objects.unpack(blob)["metadata"]
        revision = int(metadata["resourceVersion"])
        return Mutation(revision, "MODIFIED", kind, metadata.get("namespace", ""), metadata["name"], blob)

    def _remember(self, events: Iterable[Mutation]) -> None:
        known, anew = self._known, self._has_parts  # what was there may have come into a part
        for event in events:
            if event.type == "DELETED":
                known.discard((event.kind, event.namespace, event.name))
            elif anew or event.type == "ADDED":
                known.add((event.kind, event.namespace, event.name))


def _vanished(kind: str, namespace: str, name: str, revision: int) -> Mutation:
    blob = codec.pack({"kind": kind, "metadata": {"namespace": namespace, "name": name}})
    return Mutation(revision, "DELETED", kind, namespace, name, blob)
