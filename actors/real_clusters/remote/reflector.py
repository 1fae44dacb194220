"""One resource followed for ever: listed, then watched from there on (source: client-go's `tools/cache/reflector.go`).

A watch that ends is gone on with from the last resourceVersion that was heard of, bookmarks included. What has expired
(410) is listed again; so is what broke in any other way, after a delay that grows and differs from client to client. A
server that cannot be reached, or has too much to do, is asked for the same watch again. Unlike there, the delay grows
no more where something was heard meanwhile: a wire that breaks now and then leaves nobody behind for a minute.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, Protocol

import anyio

from pumice.actors.errors import CredentialsError, RemoteError
from pumice.actors.real_clusters.remote.api import RemoteApi, decoded
from pumice.actors.real_clusters.remote.backoff import Backoff
from pumice.actors.real_clusters.remote.listing import RemoteListing, RemoteResource, list_all, named, whole
from pumice.core.objects.metadata import Object, section

WATCH_S: Final = 300.0
"""A watch lasts so long or up to twice that; the server ends it."""
SILENCE_S: Final = 30.0
"""So long after its time a watch that has not ended counts as broken."""
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
    """Who hears of it all, in order."""

    async def listed(self, resource: RemoteResource, listing: RemoteListing) -> None:
        """There is this, and nothing else."""
        ...

    async def changed(self, resource: RemoteResource, type_: str, obj: Object) -> None:
        """ADDED, MODIFIED or DELETED."""
        ...

    def failed(self, resource: RemoteResource, error: RemoteError | CredentialsError) -> None:
        """It is tried again."""
        ...


class Reflector:
    """`chance` gives numbers from 0 to 1; `poll_s`: see POLL_S; `keep`: what listings hold of each object."""

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
        """Until it is cancelled."""
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
        """Watch after watch; returns when there is nothing to go on from. Raises RemoteError."""
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
        """One watch to its end; whether anything was heard. Raises RemoteError."""
        lasts_s, heard = WATCH_S * (1.0 + self._chance()), False
        query = {
            **self._resource.query,
            "watch": "true",
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
        if not isinstance(type_, str) or not revision:
            raise RemoteError(f"watch of {self._resource.path}: expected an event, was {line[:120]!r}", GONE)
        if _before(str(revision), self.revision):  # put back to an earlier day, or said for the second time
            raise RemoteError(f"watch of {self._resource.path}: the server has gone back to {revision}", GONE)
        if type_ != "BOOKMARK":
            await self._sink.changed(self._resource, type_, named(self._resource, obj))
        self.revision = str(revision)


def _before(revision: str, other: str) -> bool:
    """A server that was put back to an earlier day would never come to what it is waited for."""
    return revision.isdecimal() and other.isdecimal() and int(revision) < int(other)


def _told(resource: RemoteResource, status: Object) -> RemoteError:
    """The Status in a watch's ERROR event."""
    code, why = status.get("code"), status.get("message") or "no reason given"
    number = code if isinstance(code, int) else 500
    return RemoteError(f"watch of {resource.path}: {number}: {why}", number, str(status.get("reason") or ""))
