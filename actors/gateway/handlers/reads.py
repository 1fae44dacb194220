# SPDX-License-Identifier: Apache-2.0
"""GET: one object, or a list, whole or in pages.

A list is a consistent snapshot that the api opens without copying it. It is decoded, selected and encoded in slices
with a breath between them, so that a list of 50,000 objects never holds the loop for long; a large one is streamed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Final

from anyio import lowlevel

from pumice.actors.gateway.forms import Writer, answer_object, encode, form_of, writer
from pumice.actors.gateway.listings import Page, key_of, listing_at, token_of
from pumice.actors.gateway.problems import ApiError, too_new
from pumice.actors.gateway.protobuf import writing
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.negotiation import Form, negotiate
from pumice.actors.gateway.request.paths import Target
from pumice.actors.gateway.request.query import ListOptions, list_options
from pumice.actors.gateway.request.selection import Selection, selection
from pumice.actors.gateway.ring import first_of
from pumice.actors.gateway.site import Site
from pumice.cluster.api.kinds import Kind
from pumice.core.objects.metadata import Object
from pumice.storage import codec

ROWS: Final = 10
SLICE: Final = 100
"""Objects that are decoded and encoded without a breath: a few milliseconds."""
SLICE_BYTES: Final = 128 * 1024
"""Bytes of stored objects after which a slice ends, however few they are: a hundred large ones are megabytes, which
every open list would hold several times over.
"""
WHOLE: Final = 256 * 1024
"""A list of up to so many bytes is answered in one piece, a larger one in chunks."""


async def get_object(site: Site, exchange: Exchange, target: Target, row: Kind) -> None:
    """Answer GET of one object."""
    form = form_of(exchange, target.api_version, row.kind)
    write = writer(site.kinds, row, target.api_version, form, exchange.query)
    obj = await site.get(row.key, target.namespace, target.name)
    await answer_object(exchange, 200, write.one(obj, site.clock.now()), form)


async def get_list(site: Site, exchange: Exchange, target: Target, row: Kind) -> None:
    """Answer GET of a collection, without watch."""
    form = form_of(exchange, target.api_version, row.kind)
    write = writer(site.kinds, row, target.api_version, form, exchange.query)
    options = list_options(exchange.query)
    selected = selection(row, target.namespace, options.labels, options.fields)
    await _new_enough(site, options)
    pages = await Pages.open(site, selected, options, exchange.path)
    if not form.is_protobuf:
        await _send(exchange, write, pages)
        return
    other = _streamable(exchange)
    # A list in protobuf begins with its length, so a large one is written twice to be streamed.
    if not await _send_protobuf(exchange, write, pages, twice=other is None) and other is not None:
        pages.rewind()
        await _send(exchange, writer(site.kinds, row, target.api_version, other, exchange.query), pages)


def _streamable(exchange: Exchange) -> Form | None:
    """Return the form beside protobuf that the client accepts; None without one."""
    try:
        return negotiate(exchange.header("accept"), protobuf="none")
    except ApiError:
        return None


async def _new_enough(site: Site, options: ListOptions) -> None:
    """Wait a little for a revision that has not been given out yet."""
    asked = options.revision or 0
    if not await site.hub.knows(asked):
        raise too_new(asked, site.hub.revision.value)


class Pages:
    """One page of a listing (or all of it), item by item; `metadata` is right once it has been read to its end."""

    def __init__(self, site: Site, selected: Selection, blobs: tuple[bytes, ...], start: int, limit: int) -> None:
        self.metadata: Object = {}
        self.limit = limit
        self._site = site
        self._selected = selected
        self._blobs = blobs
        self._start = self._position = start
        self._handle = 0
        self._scope = ""

    @classmethod
    async def open(cls, site: Site, selected: Selection, options: ListOptions, path: str) -> Pages:
        """Return the present snapshot, or the one that the token names. Raises ApiError (400, 410)."""
        scope = f"{path}?{options.labels}&{options.fields}"
        if options.token:
            page, kept = site.kept.open(options.token, scope, site.clock.now())
            if kept is None:
                revision, blobs = await site.listing(selected.kind, selected.namespace or None)
                # An expired token that the client took up again: an inconsistent rest, as Kubernetes offers it.
                pages = cls(site, selected, blobs, bisect_right(blobs, page.after, key=key_of), options.limit)
            else:
                pages = cls(site, selected, kept.blobs, page.start, options.limit)
                pages._handle, revision = page.handle, kept.revision
        else:
            if options.exact:
                revision = options.exact
                blobs = await listing_at(site, selected, revision)
            else:
                revision, blobs = await site.listing(selected.kind, selected.namespace or None)
            pages = cls(site, selected, blobs, 0, options.limit)
        pages._scope = scope
        pages.metadata = {"resourceVersion": str(revision)}
        return pages

    async def slices(self, exchange: Exchange) -> AsyncGenerator[list[Object]]:
        """Yield the selected objects, some at a time, once there is room to send them."""
        left = self.limit or len(self._blobs)
        while self._position < len(self._blobs) and left > 0:
            some = first_of(self._blobs[self._position : self._position + SLICE], WHOLE)
            await exchange.reserve(sum(map(len, some)))
            found, self._position = self._some(self._position, left)
            left -= len(found)
            yield found
            await lowlevel.checkpoint()
            await self._site.turns.take()
        self._note_the_rest()

    def rewind(self) -> None:
        """Go back to the beginning of the page."""
        self._position = self._start

    def _some(self, start: int, most: int) -> tuple[list[Object], int]:
        """Return the selected objects of a slice, at most `most`, and the position after the last one seen."""
        needles = self._selected.needles()
        # Searching bytes is about five times as fast as decoding, so a slice takes as long either way.
        stop = min(start + SLICE * (5 if needles else 1), len(self._blobs))
        found: list[Object] = []
        size = 0
        for position in range(start, stop):
            blob = self._blobs[position]
            if needles and not all(needle in blob for needle in needles):
                continue
            obj: Object = codec.unpack(blob)
            if self._selected.takes(obj):
                found.append(obj)
                size += len(blob)
                if len(found) in (most, SLICE) or size > SLICE_BYTES:
                    return found, position + 1
        return found, stop

    def _note_the_rest(self) -> None:
        rest = len(self._blobs) - self._position
        if not rest:
            return
        now = self._site.clock.now()
        if not self._handle:
            self._handle = self._site.kept.keep(int(self.metadata["resourceVersion"]), self._blobs, now)
        after = key_of(self._blobs[self._position - 1])
        self.metadata["continue"] = token_of(Page(self._handle, self._position, self._scope, after))
        if self._selected.everything:
            # Only without selectors: with one the number of selected objects is not known before they are read.
            self.metadata["remainingItemCount"] = rest


async def _send(exchange: Exchange, write: Writer, pages: Pages) -> None:
    """Send a small list whole; a large one in chunks, with the metadata behind the items."""
    now = pages_now(pages)
    waiting: list[bytes] = []
    size, first = 0, True
    async with aclosing(pages.slices(exchange)) as slices:  # trio warns of one that is left before its end
        async for found in slices:
            if not found:
                continue
            # Without the brackets: the slices are joined into one list.
            part = encode([item async for item in _items(write, found, now)])[1:-1]
            found.clear()  # decoded objects are larger than their text, which waits on the client
            waiting.append(part)
            size += len(part)
            # A small list is sent with its length, in one write; a large one must not be held in memory as a whole.
            if size > WHOLE:
                if not exchange.started:
                    await exchange.begin(write.form.media)
                    waiting.insert(0, _opening(write))
                data = (b"" if first else b",") + _joined(waiting, opened=first)
                waiting.clear()
                part, size, first = b"", 0, False
                await exchange.chunk(data)
    if not exchange.started:
        head = {**write.head(), "metadata": pages.metadata}
        await exchange.answer(200, _filled(head, write.items, b",".join(waiting)), write.form.media)
        return
    if waiting:
        await exchange.chunk(b"," + b",".join(waiting))
    # The metadata last: the continue token is known only after the last item.
    await exchange.chunk(b'],"metadata":%s}\n' % encode(pages.metadata))
    await exchange.end()


async def _send_protobuf(exchange: Exchange, write: Writer, pages: Pages, *, twice: bool) -> bool:
    """Send a small list whole, and a large one in chunks if it may be written `twice`: once to count its bytes. Return
    whether it was sent.
    """
    waiting: list[bytes] = []
    size = 0
    async with aclosing(_parts(exchange, write, pages)) as parts:
        async for part in parts:
            size += len(part)
            waiting.append(part)
            if size > WHOLE:
                waiting.clear()
                if not twice:
                    return False
    head = write.head()
    metadata = writing.list_metadata(pages.metadata)
    opening = [*writing.opening(head["apiVersion"], head["kind"], len(metadata) + size), metadata]
    if size <= WHOLE:
        await exchange.answer(200, b"".join([*opening, *waiting]), write.form.media)
        return True
    await exchange.begin(write.form.media)
    await exchange.chunk(b"".join(opening))
    pages.rewind()
    async with aclosing(_parts(exchange, write, pages)) as parts:
        async for part in parts:
            await exchange.chunk(part)
    await exchange.end()
    return True


async def _parts(exchange: Exchange, write: Writer, pages: Pages) -> AsyncGenerator[bytes]:
    """Yield the items of a list in protobuf, some at a time."""
    now = pages_now(pages)
    async with aclosing(pages.slices(exchange)) as slices:
        async for found in slices:
            if found:
                shown = [write.item(obj, now) for obj in found]
                yield b"".join([writing.list_item(each["apiVersion"], each["kind"], each) for each in shown])


async def _items(write: Writer, found: list[Object], now: float) -> AsyncIterator[Any]:
    """Yield each object in the form in which it is written. Rows of a table take longer, so other tasks run between
    some of them.
    """
    for number, obj in enumerate(found):
        yield write.item(obj, now)
        if write.form.shape == "Table" and number % ROWS == ROWS - 1:
            await lowlevel.checkpoint()


def pages_now(pages: Pages) -> float:
    """Return the moment that ages are counted to."""
    return pages._site.clock.now()  # pyright: ignore[reportPrivateUsage]


def _opening(write: Writer) -> bytes:
    """Return the text of the list up to its first item."""
    head = {name: value for name, value in write.head().items() if name not in ("metadata", write.items)}
    return encode(head)[:-1] + b',"%s":[' % write.items.encode()


def _joined(parts: list[bytes], *, opened: bool) -> bytes:
    return parts[0] + b",".join(parts[1:]) if opened else b",".join(parts)


def _filled(head: Object, items: str, inside: bytes) -> bytes:
    """Return the list with its items in place."""
    member = b'"%s":[' % items.encode()
    before, _, after = encode({**head, items: []}).rpartition(member)
    return before + member + inside + after + b"\n"
