# SPDX-License-Identifier: Apache-2.0
"""One resource followed for ever: listed, then watched from there on (source: client-go's `tools/cache/reflector.go`).

A watch that ends is gone on with from the last resourceVersion that was heard of, bookmarks included. What has expired
(410) is listed again; so is what broke in any other way, after a delay that grows and differs from client to client. A
server that cannot be reached, or has too much to do, is asked for the same watch again. Unlike there, the delay grows
no more where something was heard meanwhile: a wire that breaks now and then leaves no reader behind for a minute.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, Protocol

import anyio
from msgspec import Struct

from pumice.actors.errors import BrokenAnswerError, CredentialsError, RemoteError
from pumice.actors.real_clusters.remote.api import RemoteApi, decoded
from pumice.actors.real_clusters.remote.backoff import Backoff
from pumice.core.objects.metadata import Object, is_list, section

# --- A listing, page by page
# Where connections break before a page has come, it is asked for again in smaller ones, from where the last one
# ended: a list that began anew each time, after ever longer delays, would need luck, and all readers wait for it.

# client-go's page size (`tools/pager/pager.go`, defaultPageSize).
PAGE: Final = 500
TRIES: Final = 12
"""Number of times that a page may break off, down to one object; then the connection is given up for a while."""


class RemoteResource(Struct, frozen=True):
    """Resource that is listed and watched. `key`: Pumice's name of the kind; `path`: where it is served. `only`: one
    object by its name.
    """

    key: str
    api_version: str
    kind: str
    path: str
    only: str = ""

    @property
    def query(self) -> dict[str, str]:
        """Return the query parameters that narrow the list."""
        return {"fieldSelector": f"metadata.name={self.only}"} if self.only else {}


class RemoteListing(Struct, frozen=True):
    """Objects with their `apiVersion` and `kind`, or the kept form of each, as of a resourceVersion."""

    objects: list[Any]
    revision: str


def whole(obj: Object) -> Object:
    """Keep the whole object."""
    return obj


async def list_all(
    api: RemoteApi, resource: RemoteResource, page: int = PAGE, keep: Callable[[Object], Any] = whole
) -> RemoteListing:
    """Return all objects of a resource as of one moment; where its pages expire before they are read, all of it in one
    request. `keep` is called with each object as its page comes, and only its result stays. Raises RemoteError.
    """
    try:
        return await _paged(api, resource, page, keep)
    except RemoteError as error:
        if not error.expired:
            raise
        # As client-go's pager does (FullListIfExpired).
        return await _paged(api, resource, 0, keep)


async def _paged(api: RemoteApi, resource: RemoteResource, page: int, keep: Callable[[Object], Any]) -> RemoteListing:
    objects, token, size = list[Any](), "", page
    while True:
        found, size = await _whole_page(api, resource, size, token)
        items = found.get("items")
        if items is not None and not is_list(items):
            raise RemoteError(f"GET {resource.path}: expected a list of objects, was {type(items).__name__}")
        objects += [keep(named(resource, each)) for each in items or ()]
        # The size grows back step by step: one bad moment does not make all later pages small.
        metadata, size = section(found, "metadata"), min(2 * size, page)
        token = str(metadata.get("continue") or "")
        if not token:
            return RemoteListing(objects, str(metadata.get("resourceVersion") or ""))


async def _whole_page(api: RemoteApi, resource: RemoteResource, size: int, token: str) -> tuple[Object, int]:
    """Return a page, and its limit of objects; 0 for all."""
    for left in reversed(range(TRIES)):
        query = {**resource.query, **({"limit": str(size)} if size else {}), **({"continue": token} if token else {})}
        try:
            return await api.get(resource.path, query), size
        except BrokenAnswerError:
            if not size or not left:
                raise
            size = max(size // 2, 1)
    raise AssertionError("the last try has raised")


def named(resource: RemoteResource, obj: Object) -> Object:
    """Return the object with its type, which items of a list do not have."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


WATCH_S: Final = 300.0
"""A watch lasts so long or up to twice that; the server ends it."""
SILENCE_S: Final = 30.0
"""Delay after its timeout after which an open watch counts as broken."""
SHORT_S: Final = 1.0
"""A watch that ends earlier without a word has failed."""
POLL_S: Final = 60.0
"""What cannot be watched, or is not served, or may not be read, is looked at again after so long."""
NOT_SERVED: Final = (404,)
FORBIDDEN: Final = 403
NOT_WATCHED: Final = 405
TOO_MANY: Final = 429
GONE: Final = 410


class Sink(Protocol):
    """Receiver of all changes, in order."""

    async def listed(self, resource: RemoteResource, listing: RemoteListing) -> None:
        """Take a listing: these objects exist, and no others."""
        ...

    async def changed(self, resource: RemoteResource, type_: str, obj: Object) -> None:
        """Take a change: ADDED, MODIFIED or DELETED."""
        ...

    def failed(self, resource: RemoteResource, error: RemoteError | CredentialsError) -> None:
        """Take a failure; the request is tried again."""
        ...


class Reflector:
    """Follows one resource. `chance` gives numbers from 0 to 1; `poll_s`: see POLL_S; `keep`: the form of each object
    in listings.
    """

    def __init__(
        self,
        api: RemoteApi,
        resource: RemoteResource,
        sink: Sink,
        *,
        chance: Callable[[], float] = random.random,
        poll_s: float = POLL_S,
        backoff: Backoff | None = None,
        keep: Callable[[Object], Any] = whole,
    ) -> None:
        self._keep = keep
        self._api = api
        self._resource = resource
        self._sink = sink
        self._chance = chance
        self._poll_s = poll_s
        self._backoff = backoff or Backoff(chance)
        self.revision = ""

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                await self._list()
                await self._follow()
            except RemoteError as error:
                self._sink.failed(self._resource, error)
                if error.code in (*NOT_SERVED, FORBIDDEN, NOT_WATCHED):
                    await anyio.sleep(self._poll_s)
                    continue
            except CredentialsError as error:
                self._sink.failed(self._resource, error)
            await self._wait()

    async def _wait(self) -> None:
        await anyio.sleep(self._backoff.delay_s(anyio.current_time()))

    async def _list(self) -> None:
        listing = await list_all(self._api, self._resource, keep=self._keep)
        await self._sink.listed(self._resource, listing)
        self.revision = listing.revision

    async def _follow(self) -> None:
        """Watch after watch; return when no revision is left to go on from. Raises RemoteError."""
        while True:
            began, since = anyio.current_time(), self.revision
            try:
                heard = await self._watch()
                if not heard and anyio.current_time() - began < SHORT_S:
                    await self._wait()
            except RemoteError as error:
                if error.expired:
                    return
                if error.code not in (0, TOO_MANY):
                    raise
                self._sink.failed(self._resource, error)
                if self.revision != since:
                    self._backoff.forget()
                await (self._wait() if error.retry_after_s is None else anyio.sleep(error.retry_after_s))

    async def _watch(self) -> bool:
        """Watch to the end of one watch, and return whether any event came. Raises RemoteError."""
        # By chance, as in client-go: else all watches of a server would end, and begin, together.
        lasts_s, heard = WATCH_S * (1.0 + self._chance()), False
        query = {
            **self._resource.query,
            "watch": "true",
            # They keep the revision fresh where nothing changes; a quiet watch would expire (410) otherwise.
            "allowWatchBookmarks": "true",
            "resourceVersion": self.revision,
            "timeoutSeconds": str(int(lasts_s)),
        }
        async with self._api.lines(self._resource.path, query, lasts_s + SILENCE_S) as lines:
            async for line in lines:
                await self._hear(line)
                heard = True
        return heard

    async def _hear(self, line: bytes) -> None:
        event = decoded(line) or {}
        type_, obj = event.get("type"), section(event, "object")
        if type_ == "ERROR":
            raise _told(self._resource, obj)
        revision = section(obj, "metadata").get("resourceVersion")
        # GONE: a stream that cannot be followed is put right by a new list.
        if not isinstance(type_, str) or not revision:
            raise RemoteError(f"watch of {self._resource.path}: expected an event, was {line[:120]!r}", GONE)
        if _before(str(revision), self.revision):  # put back to an earlier day, or said for the second time
            raise RemoteError(f"watch of {self._resource.path}: the server has gone back to {revision}", GONE)
        if type_ != "BOOKMARK":
            await self._sink.changed(self._resource, type_, named(self._resource, obj))
        # Only when the sink has the change: after a cancelled wait there it comes again.
        self.revision = str(revision)


def _before(revision: str, other: str) -> bool:
    """Return whether the server is at an earlier revision: one that was restored would never reach the awaited one."""
    return revision.isdecimal() and other.isdecimal() and int(revision) < int(other)


def _told(resource: RemoteResource, status: Object) -> RemoteError:
    """Return the Status in a watch's ERROR event."""
    code, why = status.get("code"), status.get("message") or "no reason given"
    number = code if isinstance(code, int) else 500
    return RemoteError(f"watch of {resource.path}: {number}: {why}", number, str(status.get("reason") or ""))
