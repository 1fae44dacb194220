# SPDX-License-Identifier: Apache-2.0
"""A very small HTTP/1.1 client for measurements: one kept connection, with as little work of its own as possible."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

JSON: Final = "application/json"
_GOOD: Final = ("200", "201", "202")
_HEAD_LIMIT: Final = 65_536
_SAID: Final = 200
_PIECE: Final = 262_144
_EVENT: Final = b'{"type":"'


class UnexpectedAnswerError(Exception):
    """The server's answer was not the expected one."""


class HttpConnection:
    """Requests one after the other, with a token if there is one. Raises UnexpectedAnswerError when the status is not
    200 to 202.
    """

    def __init__(self, stream: anyio.abc.SocketStream, host: str, token: str = "") -> None:
        self._stream = stream
        self._buffered = BufferedByteReceiveStream(stream)
        self._host = host
        self._token = token

    async def ask(self, method: str, path: str, body: bytes = b"", form: str = JSON) -> bytes:
        """Return the answer's body."""
        return b"".join([part async for part in self.parts(method, path, body, form)])

    async def parts(self, method: str, path: str, body: bytes = b"", form: str = JSON) -> AsyncGenerator[bytes]:
        """Yield the answer's body as it comes. `form`: the content type of the request."""
        await self._send(method, path, body, form)
        status, headers = await self._head()
        if status not in _GOOD:
            said = b"".join([part async for part in self._body(headers)])
            raise UnexpectedAnswerError(f"{status}: {said[:_SAID].decode('utf-8', 'replace')}")
        async for part in self._body(headers):
            yield part

    async def _body(self, headers: str) -> AsyncGenerator[bytes]:
        if "transfer-encoding: chunked" in headers:
            while size := int(await self._buffered.receive_until(b"\r\n", 64), 16):
                yield (await self._buffered.receive_exactly(size + 2))[:-2]
            await self._buffered.receive_exactly(2)
            return
        length = next(line for line in headers.split("\r\n") if line.startswith("content-length:"))
        yield await self._buffered.receive_exactly(int(length.partition(":")[2]))

    async def events(self, path: str, wanted: int) -> int:
        """Watch until so many events have come, and return the received bytes. UnexpectedAnswerError when it ends
        before.
        """
        await self._send("GET", path, b"", JSON)
        status, _ = await self._head()
        if status not in _GOOD:
            raise UnexpectedAnswerError(status)
        rest, size = b"", 0
        while wanted > 0:
            try:
                data = rest + await self._buffered.receive(_PIECE)
            except anyio.EndOfStream:
                raise UnexpectedAnswerError(f"the watch ended {wanted} events too early") from None
            size += len(data) - len(rest)
            wanted -= data.count(_EVENT)
            rest = data[1 - len(_EVENT) :]
        return size

    async def _send(self, method: str, path: str, body: bytes, form: str) -> None:
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: {self._host}",
            "User-Agent: pumice-bench",
            f"Content-Length: {len(body)}",
        ]
        if self._token:
            lines.append(f"Authorization: Bearer {self._token}")
        if body:
            lines.append(f"Content-Type: {form}")
        await self._stream.send("\r\n".join([*lines, "", ""]).encode() + body)

    async def _head(self) -> tuple[str, str]:
        """Return the status and the headers in lower case."""
        head = (await self._buffered.receive_until(b"\r\n\r\n", _HEAD_LIMIT)).decode("latin-1")
        status, _, headers = head.partition("\r\n")
        return status.split(" ")[1], headers.lower()


@asynccontextmanager
async def connected(host: str, port: int, token: str = "") -> AsyncGenerator[HttpConnection]:
    """Yield a connection, closed at the end."""
    async with await anyio.connect_tcp(host, port) as stream:
        yield HttpConnection(stream, f"{host}:{port}", token)
