# SPDX-License-Identifier: Apache-2.0
"""One request and its answer, on bare ASGI."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager, nullcontext
from typing import Any, Final

import anyio
from anyio import lowlevel

from pumice.actors.gateway.budget import Share
from pumice.actors.gateway.problems import ApiError, bad_request, too_large
from pumice.actors.gateway.request.paths import Target, parse_path
from pumice.actors.gateway.request.query import Query
from pumice.actors.gateway.request.upgrades import SOCKET, Frames, Socket
from pumice.cluster.rbac.rules import NOBODY, User
from pumice.core.messages.replies import Refused

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Scope = MutableMapping[str, Any]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application."""
PeerSubject = tuple[tuple[tuple[str, str], ...], ...]
"""The subject of a certificate, as Python's `ssl` gives it: parts, each of names with values."""
PEER: Final = "pumice.peer"
"""The key of a connection's state that holds the subject of the client's certificate."""
CUT: Final = "pumice.cut"
"""The key of a connection's state that holds the function which breaks it off."""

SHORT: Final = 4 * 1024
"""Bytes of a body, or of a part of an answer, that are held for every request."""
COPIES: Final = 3
"""Of a part of an answer, while it waits: it has been framed, and what the kernel did not take has been copied."""
PARSED: Final = 4
"""Memory for a body and the object in it, in bytes of the body."""
BODY_PATIENCE_S: Final = 60.0
"""Timeout for the body of a request."""
_UNREAD: Final = Target()
LEFTOVER_PATIENCE_S: Final = 1.0
"""Time to wait for the rest of a body that no handler wants."""


class ClientGoneError(Exception):
    """The client has left; an answer would reach no reader."""


class Exchange:
    """Reads `scope` and `receive`, writes to `send`. `started`: the answer's headers are sent. `user`: the sender, once
    its credentials were looked at. `share`: of the bytes that are held for clients; None where nothing is counted.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, share: Share | None = None) -> None:
        self.share = share
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.user: User = NOBODY
        self.started = False
        self.json_text = b""  # the body, once read as JSON: what it says twice can be seen there only
        self._unread = True
        self._reserved = 0
        self._query: Query | None = None
        self._target: Target | None = _UNREAD
        self._headers: Mapping[str, str] | None = None
        self._scope = scope
        self._receive = receive
        self._send = send
        self._socket: Socket | None = scope.get(SOCKET)

    # Not `cached_property`: before Python 3.12 each first look takes a lock, 2 µs.

    @property
    def query(self) -> Query:
        """Return the query. Raises ApiError when it cannot be read."""
        if self._query is None:
            self._query = Query(self._scope["query_string"])
        return self._query

    @property
    def target(self) -> Target | None:
        """Return what the path names, None for a path of no resource."""
        if self._target is _UNREAD:
            self._target = parse_path(self.path)
        return self._target

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers by lower-case name; several of one name are joined with commas."""
        if self._headers is None:
            self._headers = self._read_headers()
        return self._headers

    def _read_headers(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for raw_name, raw_value in self._scope["headers"]:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            # A header may come in several lines, whose values are one list (RFC 9110, section 5.3).
            found[name] = f"{found[name]},{value}" if name in found else value
        return found

    def header(self, name: str) -> str:
        """Return a header, "" when it is absent."""
        return self.headers.get(name, "")

    def every(self, name: str) -> list[str]:
        """Return the values of all headers of a name."""
        wanted = name.encode()
        return [value.decode("latin-1") for each, value in self._scope["headers"] if each.lower() == wanted]

    @property
    def peer(self) -> PeerSubject:
        """Return the subject of the client's certificate, () without a valid one."""
        state: dict[str, PeerSubject] = self._scope.get("state") or {}
        return state.get(PEER, ())

    @property
    def agent(self) -> str:
        """Return the client's name from its User-Agent: `kubectl` of `kubectl/v1.32.4 (linux/amd64) …`."""
        return self.header("user-agent").partition("/")[0].strip()[:64] or "unknown"

    @property
    def bearer(self) -> str:
        """Return the token that the client shows, "" for none."""
        scheme, _, given = self.header("authorization").partition(" ")
        if given:
            return given if scheme.lower() == "bearer" else ""
        return self._socket.token if self._socket else ""

    @property
    def client(self) -> str:
        """Return the address of the other end."""
        found: Any = self._scope.get("client")
        return found[0] if found else ""

    async def body(self, limit: int) -> bytes:
        """Return the whole body. Raises ApiError when it is larger or does not come, GoneError when the client
        leaves."""
        declared = self.header("content-length")
        # Refused by what it declares, before any of it is read. Cut, since Python refuses numbers of thousands of
        # digits.
        if declared.isdigit() and int(declared[:20]) > limit:
            raise too_large(limit)
        size = int(declared) if declared.isdigit() else limit
        if self.share is not None and size > SHORT:
            # Until the request ends: what is read from the body takes several times its bytes.
            await self.share.budget.demand(self.share, PARSED * size)
        parts: list[bytes] = []
        size, more = 0, True
        with anyio.move_on_after(BODY_PATIENCE_S):
            while more:
                with self.share.waiting() if self.share else nullcontext():
                    message = await self._receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                part: bytes = message.get("body", b"")
                parts.append(part)
                size += len(part)
                if size > limit:
                    raise too_large(limit)
                more = bool(message.get("more_body"))
        self._unread = more
        if more:
            raise ApiError(Refused(408, "Timeout", "the body did not come in time"), {"connection": "close"})
        return b"".join(parts)

    async def pass_over(self, limit: int) -> bool:
        """Skip the rest of the body, up to a limit; return whether its end was reached, so that the connection can go
        on.
        """
        # A client that waits for this answer before it sends on would hold the connection.
        with anyio.move_on_after(LEFTOVER_PATIENCE_S):
            while self._unread and limit > 0:
                message = await self._receive()
                limit -= len(message.get("body", b""))
                self._unread = bool(message.get("more_body"))
        return not self._unread

    async def hung_up(self) -> None:
        """Return when the client has left; the rest of its body is skipped."""
        while (await self._receive())["type"] != "http.disconnect":
            continue

    async def answer(
        self, status: int, body: bytes, content_type: str = "application/json", headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a whole answer."""
        listed = [(b"content-type", content_type.encode()), (b"content-length", b"%d" % len(body))]
        listed += _encoded(headers)
        async with self._holding(len(body)):
            self.started = True
            await self._send({"type": "http.response.start", "status": status, "headers": listed})
            # HEAD has the headers of GET, its length too, and no body (RFC 9110).
            await self._send({"type": "http.response.body", "body": b"" if self.method == "HEAD" else body})

    async def begin(
        self,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        status: int = 200,
        frames: Frames | None = None,
    ) -> None:
        """Send the headers of an answer in chunks. `frames`: over a WebSocket, where the client asks for one."""
        self.started = True
        if self._socket and frames:
            self._socket.frames = frames
        listed = [(b"content-type", content_type.encode()), *_encoded(headers)]
        await self._send({"type": "http.response.start", "status": status, "headers": listed})

    async def chunk(self, data: bytes) -> None:
        """Send a chunk, and wait while the client does not read. Without the checkpoint a client that reads fast, or
        has left, would keep all others from their turn.
        """
        await self.part(data)
        await lowlevel.checkpoint()

    async def part(self, data: bytes) -> None:
        """Send a chunk, for a caller that gives others their turn itself."""
        async with self._holding(len(data)):
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def reserve(self, size: int) -> None:
        """Wait for room for a part of about so many bytes before it is made, until it has been sent: thousands of
        clients would wait with a part each. One part at a time: a request that has room and waits for more could wait
        for others that do the same. Raises NoRoomError.
        """
        if self.share is not None and size > SHORT and not self._reserved:
            self._reserved = await self.share.budget.demand(self.share, COPIES * size)

    def release(self) -> None:
        """Give back what is reserved: no part is sent."""
        if self._reserved and self.share is not None:
            self.share.budget.give_back(self.share, self._reserved)
            self._reserved = 0

    @asynccontextmanager
    async def _holding(self, size: int) -> AsyncGenerator[None]:
        """Hold bytes until the client has taken them, those that are reserved for them if any. Raises NoRoomError."""
        if self.share is None:
            yield
            return
        try:
            async with self.share.holding(COPIES * size if size > SHORT and not self._reserved else 0):
                yield
        finally:
            self.release()

    async def end(self) -> None:
        """End the answer after the last chunk."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _encoded(headers: Mapping[str, str] | None) -> list[tuple[bytes, bytes]]:
    if not headers:
        return []
    return [(name.encode(), _latin(value)) for name, values in headers.items() for value in values.split("\n")]


def _latin(value: str) -> bytes:
    if any(ord(letter) < 32 for letter in value):
        raise bad_request("a header with control characters")
    return value.encode("utf-8")
