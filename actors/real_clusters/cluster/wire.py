"""Many small requests to one server over HTTP/1.1: one connection for each that is under way, used again and again.

A bind is a few hundred bytes there and back. A client for all of HTTP spends a millisecond on each, more than all the
rest of it here takes, in looking through its pool and in its own objects; here is a pool, and h11 speaks HTTP.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Final, NamedTuple

import anyio
import h11
from anyio.abc import ByteStream

from pumice.actors.errors import RemoteError

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
