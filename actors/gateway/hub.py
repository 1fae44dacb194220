# SPDX-License-Identifier: Apache-2.0
"""The hub: it reads the api's changes for all watches, into one ring a kind.

It also remembers the bytes of every object, which the store holds anyhow: a watch with a selector must learn when an
object stops matching.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import anyio
from anyio import lowlevel

from pumice.actors.gateway.ring import Ring, RingEntry
from pumice.actors.gateway.settings import MIB
from pumice.actors.gateway.webhooks.hooks import CONFIGURATIONS
from pumice.actors.runtime.actor import Context
from pumice.actors.runtime.level_signal import LevelSignal
from pumice.actors.runtime.mailbox import ask_again
from pumice.actors.system.ports import ApiPort
from pumice.cluster.api.kinds import Kind
from pumice.cluster.handles import HandleTable
from pumice.cluster.rbac.rules import KINDS as ROLES
from pumice.core.messages.commands import OpenListing, Pull, Pulled, ReadRevision, RevisionRead
from pumice.core.messages.events import Mutation
from pumice.core.messages.replies import ListingOpened
from pumice.core.objects.metadata import Object, section
from pumice.storage import codec

SLICE: Final = 200
"""Objects that are decoded at a time."""
PULL: Final = 500
NEWER_PATIENCE_S: Final = 3.0
"""Timeout for a revision in the future, as in a kube-apiserver."""
GATHER_S: Final = 0.02
"""Changes so soon after the last one go out together: a hundred watches wake for it once. The first change after a
pause goes out immediately.
"""
GATHER_A_WATCH_S: Final = 0.00025
"""The same for each watch that was woken: waking it takes about a fifth of that, so all of them together take at most a
fifth of the time.
"""
LONGEST_GATHER_S: Final = 0.25

Key = tuple[str, str]
OnDefinition = Callable[[str, str, Object], Kind | None]
TOLD: Final = ("CustomResourceDefinition", *CONFIGURATIONS, *ROLES)
"""Kinds by which the gateway itself goes."""


class Hub:
    """Reads the api's changes once for all watches, into one ring a kind. A watch reads the ring at its own speed, so a
    slow client costs the others nothing.

    `revision`: the one that it has seen. `told`: it has delivered the objects that existed when it began; `ready`: it
    knows all objects. `definition` is called with every change of a CustomResourceDefinition and of the configurations
    of webhooks and policies, and returns the kind that it defines.

    `start` is the revision that it begins at; watches from before it are gone. `objects`: their number, with
    `object_bytes` in all, as far as it has come.
    """

    def __init__(
        self,
        api: ApiPort,
        listings: HandleTable[tuple[bytes, ...]],
        context: Context,
        *,
        ring_events: int = 8_192,
        ring_bytes: int = 64 * MIB,
    ) -> None:
        self.revision = LevelSignal()
        self.told = anyio.Event()
        self.ready = anyio.Event()
        self._api = api
        self._listings = listings
        self._objects = context.objects
        self._activity = context.activity
        self._start = 0
        self._rings: dict[str, Ring] = {}
        self._known: dict[str, dict[Key, bytes]] = {}
        self.objects = 0
        self.object_bytes = 0
        self._selectable: dict[str, tuple[str, ...]] = {}
        self._ring_events = ring_events
        self._ring_bytes = ring_bytes

    def ring(self, kind: str) -> Ring:
        """Return the ring of a kind."""
        ring = self._rings.get(kind)
        if ring is None:
            ring = self._rings[kind] = Ring(self._start, self._ring_events)
        return ring

    def known(self, kind: str, namespace: str, name: str) -> bytes | None:
        """Return the bytes of an object; None for one that it has not seen."""
        return self._known.get(kind, {}).get((namespace, name))

    def forget(self) -> None:
        """Forget all changes, as a server that has just started: watches from before begin with 410."""
        self._start = self.revision.value
        for ring in self._rings.values():
            ring.reset(self._start)

    async def newest(self) -> int:
        """Return the newest revision that has been published."""
        reply = await ask_again(self._api, ReadRevision())
        return reply.revision if isinstance(reply, RevisionRead) else 0

    @property
    def held_bytes(self) -> int:
        """Return the bytes that the rings hold."""
        return sum(ring.bytes for ring in self._rings.values())

    async def knows(self, revision: int) -> bool:
        """Return whether a revision has been given out; wait a little for one that has not."""
        if revision <= self.revision.value or revision <= await self.newest():
            return True
        with anyio.move_on_after(NEWER_PATIENCE_S):
            await self.reach(revision)
        return revision <= self.revision.value

    async def reach(self, revision: int) -> None:
        """Wait until everything up to a published revision has been seen."""
        await self.revision.wait_beyond(revision - 1)

    async def run(self, name: str, kinds: Callable[[], list[str]], definition: OnDefinition) -> None:
        """Read for ever; `kinds` are the keys of all kinds that may have objects."""
        await self._begin(name, kinds, definition)
        while True:
            # Of all kinds together: one reader of the api, however many clients watch.
            found = await ask_again(self._api, Pull(name, self.revision.value, (), PULL))
            if not isinstance(found, Pulled) or found.gone:
                await self._begin(name, kinds, definition)
                continue
            woken = self._take(found, definition)
            self._activity.seen(name, found.revision)
            # A short rest gathers the changes of a burst into one wake-up of each watcher.
            if not found.more:
                await anyio.sleep(min(max(GATHER_S, woken * GATHER_A_WATCH_S), LONGEST_GATHER_S))

    def _take(self, found: Pulled, definition: OnDefinition) -> int:
        """Tell the watches, and return how many were woken."""
        touched: set[str] = set()
        for event in self._objects.changes(found.revisions, found.events):
            self._add(event, definition)
            touched.add(event.kind)
        # After all changes of the pull: a watcher that woke at the first would be woken again for the rest.
        woken = sum([self._rings[kind].publish() for kind in touched])
        # After the rings: a reader that waited for this revision must find it in them.
        self.revision.raise_to(found.revision)
        self._bound()
        return woken

    def _add(self, event: Mutation, definition: OnDefinition) -> None:
        kind, key = event.kind, (event.namespace, event.name)
        if kind in TOLD:
            self._tell(event.type, kind, self._objects.unpack(event.blob), definition)
        known = self._known.setdefault(kind, {})
        # The bytes before: a selector may have matched then and not now, which a watcher gets as DELETED.
        old = known.pop(key, None) if event.type == "DELETED" else known.get(key)
        if event.type != "DELETED":
            known[key] = event.blob
        self.objects += (event.type != "DELETED") - (old is not None)
        self.object_bytes += (0 if event.type == "DELETED" else len(event.blob)) - len(old or b"")
        selectable = self._selectable.get(kind, ())
        self.ring(kind).append(RingEntry(event.revision, event.type, kind, key, event.blob, old, selectable))

    def _tell(self, change: str, kind: str, obj: Object, definition: OnDefinition) -> None:
        row = definition(change, kind, obj)
        if row is not None:
            self._selectable[row.key] = row.selectable

    def _bound(self) -> None:
        """Halve the largest ring while all of them hold too much."""
        while self.held_bytes > self._ring_bytes:
            largest = max(self._rings.values(), key=lambda ring: ring.bytes)
            if len(largest) <= 1:
                return
            largest.shrink(len(largest) // 2)

    # --- beginning, and beginning again after something was missed

    async def _begin(self, name: str, kinds: Callable[[], list[str]], definition: OnDefinition) -> None:
        revision = await self.newest()
        self._activity.seen(name, revision)
        self._start = revision
        # Definitions first: without them a user's kind is unknown, and its objects would be skipped.
        with self._activity.busy():
            for kind in TOLD:
                self._known[kind] = await self._learn(kind, definition)
            self.told.set()
            learnt = set[str](TOLD)
            while new := [kind for kind in kinds() if kind not in learnt]:  # among them those that definitions define
                for kind in new:
                    self._known[kind] = await self._learn(kind, definition)
                learnt.update(new)
        self.objects = sum(map(len, self._known.values()))
        self.object_bytes = sum(len(blob) for known in self._known.values() for blob in known.values())
        for ring in self._rings.values():
            # What lies between the old position and this listing was never seen.
            ring.reset(revision)
        self.revision.raise_to(revision)
        self.ready.set()

    async def _learn(self, kind: str, definition: OnDefinition) -> dict[Key, bytes]:
        """Return the bytes of all objects of a kind."""
        learnt: dict[Key, bytes] = {}
        blobs = await self._blobs(kind)
        for first in range(0, len(blobs), SLICE):
            for blob in blobs[first : first + SLICE]:
                obj: Object = codec.unpack(blob)
                if kind in TOLD:
                    self._tell("MODIFIED", kind, obj, definition)
                meta = section(obj, "metadata")
                learnt[meta.get("namespace") or "", meta.get("name") or ""] = blob
            # A listing of 100,000 objects takes a second, in which no client would be answered.
            await lowlevel.checkpoint()
        return learnt

    async def _blobs(self, kind: str) -> tuple[bytes, ...]:
        while isinstance(reply := await ask_again(self._api, OpenListing(kind)), ListingOpened):
            if reply.handle in self._listings:  # else hundreds of clients asked at the same time: see `Site.listing`
                return self._listings.take(reply.handle)
        return ()

    def counts(self) -> Mapping[str, int]:
        """Return the number of objects of each known kind."""
        return {kind: len(known) for kind, known in self._known.items()}
