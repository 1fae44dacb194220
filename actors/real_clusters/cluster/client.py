"""Reading from a real API server and writing to it, no more often than it may be asked.

Each write can be made twice without harm (a bind of the same pod to the same node, a patch of one resourceVersion, an
event of its own name), so what got no answer is tried again, with delays that grow, until its time is up.
"""

from __future__ import annotations

import random
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import anyio
import h11
import httpx
import msgspec
from anyio.abc import ByteStream

from pumice.actors.errors import RemoteError
from pumice.actors.real_clusters.cluster.settings import ClusterSettings
from pumice.actors.real_clusters.remote.access import Credential, proxy_of, trust_of
from pumice.actors.real_clusters.remote.api import (
    ANSWER_S,
    INTERNAL,
    READ,
    TOO_MANY,
    UNAUTHORIZED,
    Query,
    RemoteApi,
    RemoteCall,
)
from pumice.actors.real_clusters.remote.backoff import Backoff
from pumice.core.objects.metadata import Object

# --- Many small requests to one server over HTTP/1.1: one connection for each that is under way, used again and
# again. A bind is a few hundred bytes there and back. A client for all of HTTP spends a millisecond on each, more
# than all the rest of it here takes, in looking through its pool and in its own objects; here is a pool, and h11
# speaks HTTP.

PART: Final = 65_536
MOST: Final = 64 * 1024 * 1024
"""So many bytes an answer has at most."""
BROKEN: Final = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
"""What a connection that is no more raises."""


class WireRequest(NamedTuple):
    """`path` begins with a slash; `headers` name the host."""

    method: str
    path: str
    headers: Sequence[tuple[str, str]]
    content: bytes


class WireAnswer(NamedTuple):
    """Names of headers are lower-case."""

    code: int
    headers: dict[str, str]
    content: bytes


class _Lane(NamedTuple):
    """One connection; nobody else uses it while it is out."""

    stream: ByteStream
    spoken: h11.Connection

    async def exchange(self, request: WireRequest) -> WireAnswer:
        headers = [*request.headers, ("Content-Length", str(len(request.content)))]
        head = h11.Request(method=request.method, target=request.path, headers=headers)
        events = (head, h11.Data(data=request.content), h11.EndOfMessage())
        await self.stream.send(b"".join(self.spoken.send(event) or b"" for event in events))
        code, said, found = 0, dict[str, str](), bytearray()
        while not isinstance(event := await self._next(), h11.EndOfMessage):
            match event:
                case h11.Response():
                    code = event.status_code
                    said = {name.decode("ascii"): value.decode("latin-1") for name, value in event.headers}
                case h11.Data():
                    found += event.data
                case _:  # a hint, which is no answer yet
                    pass
            if len(found) > MOST:
                raise RemoteError(f"expected an answer of at most {MOST} bytes")
        return WireAnswer(code, said, bytes(found))

    async def _next(self) -> h11.Event:
        while True:
            event = self.spoken.next_event()
            if event is not h11.NEED_DATA:
                assert not isinstance(event, type)
                return event
            try:
                self.spoken.receive_data(await self.stream.receive(PART))
            except anyio.EndOfStream:
                if self.spoken.their_state is not h11.SEND_BODY:
                    raise
                self.spoken.receive_data(b"")  # which may be how the answer ends

    def is_usable(self) -> bool:
        """Whether another request may follow."""
        _, ended = self.spoken.trailing_data
        if ended or self.spoken.our_state is not h11.DONE or self.spoken.their_state is not h11.DONE:
            return False
        self.spoken.start_next_cycle()
        return True


class WriteLanes:
    """Connections to `host`:`port`. `trust`: of TLS, None without; `name`: in its certificate where that is another."""

    def __init__(self, host: str, port: int, trust: ssl.SSLContext | None, name: str = "") -> None:
        self._host, self._port, self._trust, self._name = host, port, trust, name
        self._idle: list[_Lane] = []

    async def send(self, request: WireRequest) -> WireAnswer:
        """Of a request that may be carried out twice: a connection that had been used before and turns out to be closed
        is replaced once. Raises OSError, anyio's errors of streams, RemoteError for what is no HTTP/1.1.
        """
        if self._idle:
            try:
                return await self._sent(self._idle.pop(), request)
            except BROKEN:
                await self.aclose()  # what else waited there is as old
        return await self._sent(await self._connected(), request)

    async def _sent(self, lane: _Lane, request: WireRequest) -> WireAnswer:
        try:
            answer = await lane.exchange(request)
        except h11.ProtocolError as error:
            await anyio.aclose_forcefully(lane.stream)
            raise RemoteError(f"{request.method} {request.path[:80]!r}: no HTTP/1.1: {error}") from error
        except BaseException:
            await anyio.aclose_forcefully(lane.stream)
            raise
        if lane.is_usable():
            self._idle.append(lane)
        else:
            await anyio.aclose_forcefully(lane.stream)
        return answer

    async def aclose(self) -> None:
        """All that are not in use."""
        while self._idle:
            await anyio.aclose_forcefully(self._idle.pop().stream)

    async def _connected(self) -> _Lane:
        stream: ByteStream
        if self._trust is None:
            stream = await anyio.connect_tcp(self._host, self._port)
        else:
            stream = await anyio.connect_tcp(
                self._host,
                self._port,
                ssl_context=self._trust,
                tls_standard_compatible=False,
                tls_hostname=self._name or None,
            )
        return _Lane(stream, h11.Connection(h11.CLIENT))


# ---

# --- Requests a second, in the long run and at once (source: client-go's `flowcontrol.NewTokenBucketRateLimiter`).


class TokenBucket:
    """`burst` tokens at first and at most, `qps` more each second; without a `qps` there are always enough."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps = qps
        self._burst = float(max(burst, 1))
        self._left = self._burst
        self._at: float | None = None

    def delay_s(self, now: float) -> float:
        """Take one at `now` (seconds of a clock that only goes on); how long to wait for it."""
        if self._qps <= 0:
            return 0.0
        since = 0.0 if self._at is None else now - self._at
        self._at = now
        self._left = min(self._left + since * self._qps, self._burst) - 1.0
        return max(-self._left / self._qps, 0.0)

    async def take(self) -> None:
        """Return when it is there. Who comes first has it first."""
        delay = self.delay_s(anyio.current_time())
        if delay:
            await anyio.sleep(delay)


# ---

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
FIRST_S: Final = 0.05
LONGEST_S: Final = 5.0


class ClusterClient(RemoteApi):
    """To be used as `async with`."""

    kept_open = 256

    def __init__(self, settings: ClusterSettings, *, throttled: bool = True) -> None:
        super().__init__(settings.access, transport=settings.transport)
        self._bucket = TokenBucket(settings.qps if throttled else 0.0, settings.burst)
        self._reached = settings.access
        self._wires: dict[tuple[bytes, bytes], WriteLanes] = {}
        self._direct = settings.transport is None and proxy_of(settings.access) is None

    async def __aexit__(self, *raised: object) -> None:
        with anyio.CancelScope(shield=True):
            for wire in self._wires.values():
                await wire.aclose()
        await super().__aexit__(*raised)

    @asynccontextmanager
    async def _asked(
        self, path: str, query: Query | None, silence_s: float, call: RemoteCall = READ
    ) -> AsyncGenerator[httpx.Response]:
        await self._bucket.take()
        if self._direct and call is not READ:
            yield await self._sent(path, call, silence_s)
            return
        async with super()._asked(path, query, silence_s, call) as answer:
            yield answer

    async def _sent(self, path: str, call: RemoteCall, silence_s: float) -> httpx.Response:
        """The answer to a write, as a whole; asked once more with another credential when that was the matter."""
        shown = await self._credentials.current()
        answer = await self._over_wire(shown, path, call, silence_s)
        if answer.code == UNAUTHORIZED:
            self._credentials.refused()
            answer = await self._over_wire(await self._credentials.current(), path, call, silence_s)
            if answer.code == UNAUTHORIZED:
                self._credentials.refused()
        kept = {name: answer.headers[name] for name in ("retry-after",) if name in answer.headers}
        return httpx.Response(answer.code, headers=kept, content=answer.content)

    async def _over_wire(self, shown: Credential, path: str, call: RemoteCall, silence_s: float) -> WireAnswer:
        url = httpx.URL(self.server)
        host = url.netloc.decode("ascii")
        headers = [("Host", host), ("Accept", JSON), ("User-Agent", "pumice"), ("Content-Type", call.content_type)]
        if shown.header:
            headers.append(("Authorization", shown.header))
        headers += self._reached.impersonation
        request = WireRequest(call.method, url.path.rstrip("/") + path, headers, call.content)
        try:
            with anyio.fail_after(silence_s):
                return await self._wire(shown, url).send(request)
        except (TimeoutError, *BROKEN) as error:
            raise RemoteError(f"{self.server}: no answer: {str(error) or type(error).__name__}") from error

    def _wire(self, shown: Credential, url: httpx.URL) -> WriteLanes:
        """One for each certificate that is shown."""
        key = (shown.certificate, shown.key)
        found = self._wires.get(key)
        if found is None:
            trust = trust_of(self._reached, shown)
            context = trust if isinstance(trust, ssl.SSLContext) else None
            port = url.port or (443 if context else 80)
            found = self._wires[key] = WriteLanes(url.host, port, context, self._reached.server_name)
        return found

    async def create(self, path: str, obj: Object, until: float) -> Object:
        """POST. `until`: event-loop time, seconds. Raises RemoteError, CredentialsError."""
        return await self._write("POST", path, obj, JSON, until)

    async def replace(self, path: str, obj: Object, until: float) -> Object:
        """PUT."""
        return await self._write("PUT", path, obj, JSON, until)

    async def patch(self, path: str, patch: Object, until: float) -> Object:
        """PATCH, as a JSON merge patch."""
        return await self._write("PATCH", path, patch, MERGE_PATCH, until)

    async def delete(self, path: str, options: Object, until: float) -> Object:
        """DELETE."""
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
                    if error.code and error.code != TOO_MANY and error.code < INTERNAL:
                        raise
                    problem = error
                await anyio.sleep(backoff.delay_s(anyio.current_time()))
        raise problem
