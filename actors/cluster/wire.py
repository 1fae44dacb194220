"""HTTP/1.1 for many small requests to one server: one connection for each that is under way, used again and again.

A bind is a few hundred bytes there and back. A client for all of HTTP spends a millisecond on each, more than all the
rest of it here takes; this one sends a whole request, reads a whole answer, and knows nothing else.
"""

from __future__ import annotations

import ssl
from typing import Final, NamedTuple

import anyio
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from actors.errors import RemoteError

HEAD: Final = 65_536
"""So many bytes a head has at most."""
LINE: Final = 4_096
MOST: Final = 64 * 1024 * 1024
NO_BODY: Final = (204, 304)
BROKEN: Final = (
    OSError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.DelimiterNotFound,
    anyio.EndOfStream,
    anyio.IncompleteRead,
)
"""What a connection that is no more raises."""


class WireAnswer(NamedTuple):
    """Names of headers are lower-case."""

    code: int
    headers: dict[str, str]
    content: bytes


class _Lane(NamedTuple):
    """One connection; nobody else uses it while it is out."""

    stream: ByteStream
    received: BufferedByteReceiveStream


class WriteLanes:
    """Connections to `host`:`port`. `trust`: of TLS, None without; `name`: in its certificate where that is another."""

    def __init__(self, host: str, port: int, trust: ssl.SSLContext | None, name: str = "") -> None:
        self._host, self._port, self._trust, self._name = host, port, trust, name
        self._idle: list[_Lane] = []

    async def send(self, request: bytes) -> WireAnswer:
        """Of a request that may be carried out twice: a connection that had been used before and turns out to be closed
        is replaced once. Raises OSError, anyio's errors of streams, RemoteError for what is no HTTP/1.1.
        """
        if self._idle:
            try:
                return await self._sent(self._idle.pop(), request)
            except BROKEN:
                await self.aclose()  # what else waited there is as old
        return await self._sent(await self._connected(), request)

    async def _sent(self, lane: _Lane, request: bytes) -> WireAnswer:
        try:
            await lane.stream.send(request)
            answer = await _read(lane.received)
        except BaseException:
            await anyio.aclose_forcefully(lane.stream)
            raise
        if answer.headers.get("connection", "").lower() == "close":
            await anyio.aclose_forcefully(lane.stream)
        else:
            self._idle.append(lane)
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
        return _Lane(stream, BufferedByteReceiveStream(stream))


async def _read(received: BufferedByteReceiveStream) -> WireAnswer:
    while True:
        head = await received.receive_until(b"\r\n\r\n", HEAD)
        first, *lines = head.decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        if version != "HTTP/1.1" or not rest[:3].isdecimal():
            raise RemoteError(f"expected an answer of HTTP/1.1, was {first[:LINE]!r}")
        code = int(rest[:3])
        if code >= 200:  # what comes before is no answer yet
            break
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return WireAnswer(code, headers, b"" if code in NO_BODY else await _body(received, headers))


async def _body(received: BufferedByteReceiveStream, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _chunks(received)
    length = headers.get("content-length", "")
    if not length.isdecimal() or int(length) > MOST:
        raise RemoteError(f"expected an answer with its length, was {length[:20]!r}")
    return await received.receive_exactly(int(length)) if int(length) else b""


async def _chunks(received: BufferedByteReceiveStream) -> bytes:
    found = bytearray()
    while True:
        size = _size(await received.receive_until(b"\r\n", LINE))
        if not size:
            break
        found += await received.receive_exactly(size)
        await received.receive_exactly(2)
        if len(found) > MOST:
            raise RemoteError(f"expected an answer of at most {MOST} bytes")
    while await received.receive_until(b"\r\n", LINE):
        pass
    return bytes(found)


def _size(line: bytes) -> int:
    try:
        return int(line.partition(b";")[0], 16)
    except ValueError as error:
        raise RemoteError(f"expected the length of a chunk, was {line[:20]!r}") from error


def request_of(method: str, path: str, host: str, headers: dict[str, str], content: bytes) -> bytes:
    """Its bytes. `path` and the values of headers have no line feeds."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in headers.items())]
    head = "\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""])
    if head.count("\n") != len(lines) + 2:
        raise RemoteError(f"{method} {path[:80]!r}: no such path or header can be sent")
    return head.encode("latin-1") + content
