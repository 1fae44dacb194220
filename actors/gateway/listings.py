# SPDX-License-Identifier: Apache-2.0
"""Listings of the past: kept for a client that reads in pages, or made again from the ring."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from itertools import count
from typing import TYPE_CHECKING, Final

import msgspec
from anyio import lowlevel
from msgspec import structs

from pumice.actors.gateway.problems import bad_request, expired
from pumice.storage import codec

if TYPE_CHECKING:
    from pumice.actors.gateway.request.selection import Selection
    from pumice.actors.gateway.ring import Ring, RingEntry
    from pumice.actors.gateway.site import Site
    from pumice.core.objects.metadata import Object

# --- A listing at an earlier revision

SLICE: Final = 200
Key = tuple[str, str]


async def listing_at(site: Site, selected: Selection, revision: int) -> tuple[bytes, ...]:
    """Return the objects of a kind at a revision that has been given out. Raises ApiError (410) where that is not
    known."""
    current, blobs = await site.listing(selected.kind, selected.namespace or None)
    if revision == current:
        return blobs
    # The ring must have come as far as the listing, or changes between the two would be missed.
    await site.hub.reach(current)
    since = _since(site.hub.ring(selected.kind), revision, current, selected.namespace)
    if not since:
        return blobs
    there = dict[Key, bytes]()
    for number, blob in enumerate(blobs):
        there[key_of(blob)] = blob
        if number % SLICE == SLICE - 1:
            await lowlevel.checkpoint()
    for key, was in since.items():
        if was is None:
            there.pop(key, None)
        else:
            there[key] = was
    return tuple(there[key] for key in sorted(there))


def _since(ring: Ring, revision: int, current: int, namespace: str) -> dict[Key, bytes | None]:
    """Return the objects that have changed since, as they were before; None for one that did not exist."""
    if revision < ring.oldest:
        raise _too_old(revision)
    found: dict[Key, bytes | None] = {}
    for entry in ring.entries():
        # Later than the listing: the listing does not have it, so there is nothing to take back.
        if entry.revision > current:
            break
        if entry.revision <= revision or (namespace and entry.key[0] != namespace):
            continue
        # The first change after the revision tells what was before; later ones do not matter.
        if entry.key not in found:
            found[entry.key] = _met(entry, revision)
    return found


def _met(entry: RingEntry, revision: int) -> bytes | None:
    """Return the object that the first change after a revision has met."""
    if entry.type == "ADDED":
        return None
    met = entry.blob if entry.type == "DELETED" else entry.old
    if met is None:  # the hub knew of no object
        raise _too_old(revision)
    return met


def _too_old(revision: int) -> Exception:
    return expired(f"The resourceVersion for the provided list is too old: {revision}")


def key_of(blob: bytes) -> Key:
    """Return namespace and name of an object in a listing, by which it is sorted."""
    meta: Object = codec.unpack(blob)["metadata"]
    return meta.get("namespace") or "", meta["name"]


MOST: Final = 64
AGE_S: Final = 300.0
EXPIRED: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class Page(msgspec.Struct, frozen=True):
    """The listing of `handle` from position `start` on; `scope` is the listing's request.

    `after`: namespace and name of the object before that position; a page without a listing (0) goes on from there.
    """

    handle: int
    start: int
    scope: str
    after: tuple[str, str]


class KeptListing(msgspec.Struct):
    """One listing; `at` is when a client last advanced in it, which is to `reached`."""

    revision: int
    blobs: tuple[bytes, ...]
    at: float
    reached: int = 0


class KeptListings:
    """Kept listings: at most `MOST` of them, each for at most `AGE_S` without progress of its client."""

    def __init__(self) -> None:
        self._listings: OrderedDict[int, KeptListing] = OrderedDict()
        self._handles = count(1)

    def __len__(self) -> int:
        return len(self._listings)

    def keep(self, revision: int, blobs: tuple[bytes, ...], now: float) -> int:
        """Keep a listing, and return its handle."""
        handle = next(self._handles)
        self._listings[handle] = KeptListing(revision, blobs, now)
        self._tidy(now)
        return handle

    def open(self, token: str, scope: str, now: float) -> tuple[Page, KeptListing | None]:
        """Return the page of a token, and its listing unless the page needs none. Raises ApiError: 400 for a token that
        is not valid, 410 for an expired one.
        """
        page = _decoded(token)
        if page.scope != scope:
            raise bad_request("continue key is not valid: it belongs to another list")
        self._tidy(now)
        kept = self._listings.get(page.handle)
        if page.handle and (kept is None or not 0 <= page.start <= len(kept.blobs)):
            # With a token all the same: kubectl goes on from the name where a page ended, without consistency.
            raise expired(EXPIRED, token_of(structs.replace(page, handle=0, start=0)))
        if kept is not None and page.start > kept.reached:
            # Only progress keeps a listing alive: a client that asks for one page again and again cannot hold it for
            # ever.
            kept.at, kept.reached = now, page.start
            self._listings.move_to_end(page.handle)
        return page, kept

    def _tidy(self, now: float) -> None:
        while self._listings:
            # `open` moves a listing to the end when its client advances, so the first is the one left alone longest.
            oldest = next(iter(self._listings.values()))
            if len(self._listings) <= MOST and now - oldest.at <= AGE_S:
                return
            self._listings.popitem(last=False)


def token_of(page: Page) -> str:
    """Return the text that a client sends back."""
    return urlsafe_b64encode(msgspec.json.encode(page)).decode()


def _decoded(token: str) -> Page:
    try:
        return msgspec.json.decode(urlsafe_b64decode(token.encode("ascii")), type=Page)
    except (ValueError, msgspec.MsgspecError) as error:
        raise bad_request(f"continue key is not valid: {error}") from error
