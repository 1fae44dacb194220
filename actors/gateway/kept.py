"""Listings that a client reads in pages: kept as they were when the first page was asked for.

A continue token names the listing and how far it was read; it may be shown again, as for a page that broke off on the
way, the last one too. What is kept are references to bytes that the store mostly holds too; the oldest is given up when
there are too many, or when nobody has got on with it for long, and then the token has expired (410). The refusal brings
another one, by which the list goes on behind the last object, as things are by then.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from itertools import count
from typing import Final

import msgspec
from msgspec import structs

from pumice.actors.gateway.problems import bad_request, expired

MOST: Final = 64
AGE_S: Final = 300.0
EXPIRED: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class Page(msgspec.Struct, frozen=True):
    """The listing of `handle` from position `start` on; `scope` says what the list was asked for.

    `after`: namespace and name of the object before that position; a page without a listing (0) goes on from there.
    """

    handle: int
    start: int
    scope: str
    after: tuple[str, str]


class KeptListing(msgspec.Struct):
    """One listing; `at` is when somebody last got further in it than before, which is to `reached`."""

    revision: int
    blobs: tuple[bytes, ...]
    at: float
    reached: int = 0


class KeptListings:
    """At most `MOST` of them, none in which nobody gets on for longer than `AGE_S`."""

    def __init__(self) -> None:
        self._listings: OrderedDict[int, KeptListing] = OrderedDict()
        self._handles = count(1)

    def __len__(self) -> int:
        return len(self._listings)

    def keep(self, revision: int, blobs: tuple[bytes, ...], now: float) -> int:
        """Keep a listing; its handle."""
        handle = next(self._handles)
        self._listings[handle] = KeptListing(revision, blobs, now)
        self._tidy(now)
        return handle

    def open(self, token: str, scope: str, now: float) -> tuple[Page, KeptListing | None]:
        """What a token stands for: a page, and its listing unless it goes on without. Raises ApiError: 400 for one that
        is none, 410 for an old one.
        """
        page = _decoded(token)
        if page.scope != scope:
            raise bad_request("continue key is not valid: it belongs to another list")
        self._tidy(now)
        kept = self._listings.get(page.handle)
        if page.handle and (kept is None or not 0 <= page.start <= len(kept.blobs)):
            raise expired(EXPIRED, token_of(structs.replace(page, handle=0, start=0)))
        if kept is not None and page.start > kept.reached:
            kept.at, kept.reached = now, page.start
            self._listings.move_to_end(page.handle)
        return page, kept

    def _tidy(self, now: float) -> None:
        while self._listings:
            oldest = next(iter(self._listings.values()))
            if len(self._listings) <= MOST and now - oldest.at <= AGE_S:
                return
            self._listings.popitem(last=False)


def token_of(page: Page) -> str:
    """The text that a client sends back."""
    return urlsafe_b64encode(msgspec.json.encode(page)).decode()


def _decoded(token: str) -> Page:
    try:
        return msgspec.json.decode(urlsafe_b64decode(token.encode("ascii")), type=Page)
    except (ValueError, msgspec.MsgspecError) as error:
        raise bad_request(f"continue key is not valid: {error}") from error
