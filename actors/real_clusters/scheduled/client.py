# SPDX-License-Identifier: Apache-2.0
"""Reading from a real API server and writing to it, within a limit of requests.

Each write can be made twice without harm (a bind of the same pod to the same node, a patch of one resourceVersion, an
event of its own name), so what got no answer is tried again, with delays that grow, until its time is up.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio
import httpx
import msgspec

from pumice.actors.errors import RemoteError
from pumice.actors.real_clusters.remote.access import Credential
from pumice.actors.real_clusters.remote.api import (
    ANSWER_S,
    INTERNAL,
    READ,
    TOO_MANY,
    Query,
    RemoteApi,
    RemoteCall,
    connections,
)
from pumice.actors.real_clusters.remote.backoff import Backoff
from pumice.actors.real_clusters.scheduled.settings import ClusterSettings
from pumice.core.objects.metadata import Object

# --- Connections: many small requests to one server over HTTP/1.1


class WriteLanes(httpx.AsyncBaseTransport):
    """A pool that takes any idle connection. httpx's own searches all its connections for each request, which at 256
    writers takes four times as long as the rest of a request.
    """

    def __init__(self, made: Callable[[], httpx.AsyncBaseTransport]) -> None:
        self._made = made
        self._idle: list[httpx.AsyncBaseTransport] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request over a lane, which is idle again when its answer has been read and closed."""
        # The lane used last: its connection is the least likely to have been closed by the server.
        lane = self._idle.pop() if self._idle else self._made()
        try:
            answer = await lane.handle_async_request(request)
        except BaseException:
            # A lane whose request failed is as good as new: its pool drops the broken connection.
            self._idle.append(lane)
            raise
        assert isinstance(answer.stream, httpx.AsyncByteStream)
        answer.stream = _OfLane(answer.stream, lane, self._idle)
        return answer

    async def aclose(self) -> None:
        """Close all connections that are not in use."""
        while self._idle:
            await self._idle.pop().aclose()


class _OfLane(httpx.AsyncByteStream):
    def __init__(
        self, inner: httpx.AsyncByteStream, lane: httpx.AsyncBaseTransport, idle: list[httpx.AsyncBaseTransport]
    ) -> None:
        self._inner, self._lane, self._idle = inner, lane, idle

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._inner)

    async def aclose(self) -> None:
        # First: httpcore gives the connection back only when the answer is closed.
        await self._inner.aclose()
        self._idle.append(self._lane)


# --- A token bucket
# Source: client-go's `flowcontrol.NewTokenBucketRateLimiter`.


class TokenBucket:
    """A bucket of `burst` tokens at first and at most, with `qps` more each second; without a `qps` it is always
    full.
    """

    def __init__(self, qps: float, burst: int) -> None:
        self._qps = qps
        self._burst = float(max(burst, 1))
        self._left = self._burst
        self._at: float | None = None

    def delay_s(self, now: float) -> float:
        """Take a token at `now` (seconds of a clock that only goes on), and return how long to wait for it."""
        if self._qps <= 0:
            return 0.0
        since = 0.0 if self._at is None else now - self._at
        self._at = now
        # Below 0 it counts the callers that wait: each later one waits for one token more.
        self._left = min(self._left + since * self._qps, self._burst) - 1.0
        return max(-self._left / self._qps, 0.0)

    async def take(self) -> None:
        """Return when it is there. The first caller gets it first."""
        delay = self.delay_s(anyio.current_time())
        if delay:
            await anyio.sleep(delay)


JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
FIRST_S: Final = 0.05
LONGEST_S: Final = 5.0


class ClusterClient(RemoteApi):
    """A client that reads and writes, to be used as `async with`."""

    def __init__(self, settings: ClusterSettings, *, throttled: bool = True) -> None:
        super().__init__(settings.access, transport=settings.transport)
        self._bucket = TokenBucket(settings.qps if throttled else 0.0, settings.burst)

    @asynccontextmanager
    async def _asked(
        self, path: str, query: Query | None, silence_s: float, call: RemoteCall = READ
    ) -> AsyncGenerator[httpx.Response]:
        # For reads as well: client-go has one limit for all requests of a client.
        await self._bucket.take()
        async with super()._asked(path, query, silence_s, call) as answer:
            yield answer

    def _network(self, shown: Credential) -> httpx.AsyncBaseTransport:
        return WriteLanes(connections(self._access, shown))

    async def create(self, path: str, obj: Object, until: float) -> Object:
        """Send POST. `until`: event-loop time, seconds. Raises RemoteError, CredentialsError."""
        return await self._write("POST", path, obj, JSON, until)

    async def replace(self, path: str, obj: Object, until: float) -> Object:
        """Send PUT."""
        return await self._write("PUT", path, obj, JSON, until)

    async def patch(self, path: str, patch: Object, until: float) -> Object:
        """Send PATCH, as a JSON merge patch."""
        return await self._write("PATCH", path, patch, MERGE_PATCH, until)

    async def delete(self, path: str, options: Object, until: float) -> Object:
        """Send DELETE."""
        return await self._write("DELETE", path, options, JSON, until)

    async def _write(self, method: str, path: str, obj: Object, type_: str, until: float) -> Object:
        call = RemoteCall(method, msgspec.json.encode(obj), type_)
        backoff = Backoff(random.random, FIRST_S, LONGEST_S)
        problem = RemoteError(f"{method} {path}: its time was up before it was sent")
        with anyio.CancelScope(deadline=until):
            while True:
                try:
                    return await self._answer(path, None, call, ANSWER_S)
                except RemoteError as error:
                    # A refused request (4xx) is refused again each time; code 0 means that no answer came.
                    if error.code and error.code != TOO_MANY and error.code < INTERNAL:
                        raise
                    problem = error
                await anyio.sleep(backoff.delay_s(anyio.current_time()))
        raise problem
