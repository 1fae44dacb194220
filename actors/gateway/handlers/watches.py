# SPDX-License-Identifier: Apache-2.0
"""GET with watch=true: one event a line, frame of protobuf or frame of a WebSocket, for as long as the client stays.

What is there already is sent first when the client asks for it (`sendInitialEvents`, or no revision, or revision 0),
then what changes, from the ring of the kind. A client that does not read fills its connection and stops no other
client; when it reads again and has fallen off the ring it gets 410 and lists again.

As with a kube-apiserver's watch cache (`apiserver/pkg/storage/cacher`) a watch is open once its request is understood:
what cannot be watched is reported in it, by one event of type ERROR, after which it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import anyio
from anyio import lowlevel
from msgspec.structs import replace

from pumice.actors.gateway.budget import NoRoomError, Use
from pumice.actors.gateway.forms import Writer, form_of, writer
from pumice.actors.gateway.problems import ApiError, expired, failure, too_new
from pumice.actors.gateway.request.exchange import ClientGoneError, Exchange
from pumice.actors.gateway.request.paths import Target
from pumice.actors.gateway.request.query import ListOptions, list_options
from pumice.actors.gateway.request.selection import Condition, Selection, selection
from pumice.actors.gateway.ring import CHUNK, Ring, RingEntry, RingPart, first_of
from pumice.actors.gateway.site import Site
from pumice.actors.gateway.watch_events import format_of
from pumice.cluster.api.kinds import Kind
from pumice.core.objects.metadata import Object
from pumice.storage import codec

SLICE: Final = 100
# The default of a kube-apiserver's `--min-request-timeout`.
LONGEST_S: Final = 1800
"""A watch without timeoutSeconds ends after so long."""
BOOKMARK_S: Final = 30.0
INITIAL_END: Final = "k8s.io/initial-events-end"


async def watch(site: Site, exchange: Exchange, target: Target, row: Kind) -> None:
    """Watch a collection, or one object of it."""
    form = form_of(exchange, target.api_version, row.kind)
    write = writer(site.kinds, row, target.api_version, form, exchange.query)
    options = list_options(exchange.query, watch=True)
    selected = selection(row, target.namespace, options.labels, options.fields)
    if target.name:
        named = (*selected.fields, Condition("metadata.name", True, target.name))
        selected = replace(selected, fields=named)
    # Before the hub knows all objects, a change could not tell whether its object matched before.
    await site.hub.ready.wait()
    with site.watching():
        await Stream(site, exchange, write, selected, options).run()


class Stream:
    """Serves one watch: what exists first, where the client wants it, then each change from the kind's ring."""

    def __init__(
        self, site: Site, exchange: Exchange, write: Writer, selected: Selection, options: ListOptions
    ) -> None:
        self._site = site
        self._exchange = exchange
        self._write = write
        self._events, self._media = format_of(write.form.media)
        self._selected = selected
        self._options = options
        self._ring: Ring = site.hub.ring(selected.kind)
        self._source: Ring | RingPart = self._ring
        self._read = -1  # nothing yet
        self._told = False
        self._after = 0

    async def run(self) -> None:
        """Send until the client leaves, its time is up, or the changes cannot be sent to it."""
        if self._exchange.share is not None:
            self._exchange.share.use = Use.WATCH
        seconds = self._options.timeout_s
        lasts = min(seconds, LONGEST_S) if seconds and seconds > 0 else LONGEST_S
        await self._exchange.begin(self._media, frames=self._events.frames)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._until_gone, tasks.cancel_scope)
            with anyio.move_on_after(lasts) as time, self._site.open.endless(time):
                await self._tell()
            with suppress(ClientGoneError, NoRoomError):
                if time.cancelled_caught and self._options.bookmarks and not self._owes():
                    await self._bookmark()
                await self._exchange.end()
            tasks.cancel_scope.cancel()

    async def _tell(self) -> None:
        """Send events for ever, or until one of type ERROR says why there are no more."""
        with suppress(ClientGoneError, NoRoomError):
            try:
                await self._follow(await self._start())
            except ApiError as error:
                await self._exchange.chunk(self._events.write("ERROR", failure(error.refused)))

    async def _start(self) -> int:
        """Send the existing objects, and return the position to go on from. Raises ApiError, 410 for an old
        revision.
        """
        options, hub = self._options, self._site.hub
        if options.initial or (options.initial is None and not options.revision):
            asked = options.revision or 0
            if not await hub.knows(asked):
                raise too_new(asked, hub.revision.value)
            revision, blobs = await self._site.listing(self._selected.kind, self._selected.namespace or None)
            await hub.reach(revision)
            # Before the objects are sent: what changes while they are on their way follows them.
            position = self._position(revision)
            await self._send_initial(revision, blobs)
            return position
        self._after = options.revision or await hub.newest()
        return self._position(self._after)

    def _position(self, revision: int) -> int:
        """Return the position of the first entry newer than a revision, or of the next entry to come. Raises ApiError
        (410)."""
        self._ring = self._site.hub.ring(self._selected.kind)
        position = self._ring.position(revision)
        if position is None:
            raise expired(f"too old resource version: {revision} ({self._ring.oldest})")
        namespace = self._selected.namespace
        self._source = self._ring.part(namespace) if namespace else self._ring
        return position

    async def _until_gone(self, scope: anyio.CancelScope) -> None:
        await self._exchange.hung_up()
        scope.cancel()

    # --- what is there already

    async def _send_initial(self, revision: int, blobs: tuple[bytes, ...]) -> None:
        first = 0
        while first < len(blobs):
            # By bytes, too: a hundred large objects would be megabytes in each of many watches.
            some = first_of(blobs[first : first + SLICE], CHUNK)
            first += len(some)
            await self._exchange.reserve(sum(map(len, some)))
            await self._site.turns.take()
            if chunk := b"".join(self._added(some)):
                await self._exchange.chunk(chunk)
            else:
                self._exchange.release()
                await lowlevel.checkpoint()
        if self._options.initial and self._options.bookmarks:
            annotations = {INITIAL_END: "true"}
            metadata = {"resourceVersion": str(revision), "annotations": annotations}
            await self._exchange.chunk(self._events.write("BOOKMARK", self._write.bookmark(metadata)))

    def _added(self, blobs: Sequence[bytes]) -> list[bytes]:
        events: list[bytes] = []
        for blob in blobs:
            obj: Object = codec.unpack(blob)
            if self._selected.takes(obj):
                events.append(self._event("ADDED", obj))
        return events

    # --- what changes

    async def _follow(self, position: int) -> None:
        self._read, sent = position, False
        while True:
            found = self._source.read(self._read)
            if found is None or self._is_expelled:
                raise expired("too old resource version: the watch was too slow and has fallen behind")
            entries, after = found
            if not entries:
                await self._idle(after)
            # Only here: one that has sent all sleeps anyway, and hundreds would have a turn each for nothing.
            elif sent:
                await lowlevel.checkpoint()
            await self._exchange.reserve(sum(len(entry.blob) for entry in entries))
            await self._site.turns.take()
            if chunk := self._chunk(self._read, entries):
                await self._exchange.part(chunk)
            else:
                self._exchange.release()
            self._read, sent = after, bool(entries)

    @property
    def _is_expelled(self) -> bool:
        """Return whether the watch must make room for others."""
        share = self._exchange.share
        return share is not None and share.expelled is not None

    async def _idle(self, position: int) -> None:
        """Wait for news of the watched kind; from time to time a bookmark tells how far the other kinds have come."""
        self._read = position
        with anyio.move_on_after(BOOKMARK_S) as time:
            await self._source.news.wait_beyond(position)
        if time.cancelled_caught and self._options.bookmarks and not self._owes():
            await self._bookmark()

    def _owes(self) -> bool:
        """Return whether an entry was not yet sent, or not completely: a bookmark now would skip it."""
        found = self._source.read(self._read)
        return found is None or bool(found[0])

    def _chunk(self, position: int, entries: list[RingEntry]) -> bytes:
        if not entries:
            return b""
        if entries[0].revision <= self._after:  # the client has it from wherever it got its revision
            return b"".join([self._seen(entry) for entry in entries if entry.revision > self._after])
        # The most common watch: all such watches of a kind, or of a namespace, share bytes that were joined once.
        if self._write.plain and self._selected.everything:
            return self._source.joined.of(position, entries, self._events)
        return b"".join([self._seen(entry) for entry in entries])

    def _seen(self, entry: RingEntry) -> bytes:
        """Return the change as this watch sees it: an object that begins to match is ADDED, one that stops is
        DELETED."""
        if self._selected.everything and self._write.plain:
            return entry.event(self._events)
        had = entry.before is not None and self._selected.has(entry.before)
        has = entry.after is not None and self._selected.has(entry.after)
        if entry.type == "DELETED":
            shown = "DELETED" if had else ""
        else:
            shown = ("MODIFIED" if had else "ADDED") if has else ("DELETED" if had else "")
        if not shown:
            return b""
        if shown == entry.type and self._write.plain:
            return entry.event(self._events)
        return self._event(shown, entry.obj())

    def _event(self, type_: str, obj: Object) -> bytes:
        # A Table's columns go out once: kubectl keeps those of the first event.
        shown: Any = self._write.one(obj, self._site.clock.now(), headers=not self._told)
        self._told = True
        return self._events.write(type_, shown)

    async def _bookmark(self) -> None:
        metadata = {"resourceVersion": str(self._site.hub.revision.value)}
        await self._exchange.chunk(self._events.write("BOOKMARK", self._write.bookmark(metadata)))
