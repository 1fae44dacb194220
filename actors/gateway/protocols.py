# SPDX-License-Identifier: Apache-2.0
"""Hypercorn's protocols, corrected: a client's input may end its own stream or connection, and nothing else.

Hypercorn has no setting for any of this, so `mend` puts these classes in the place of its own.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any, Final

import hypercorn.protocol
from anyio import lowlevel
from h2.errors import ErrorCodes
from h2.events import DataReceived, Event, RequestReceived
from h2.exceptions import StreamClosedError
from h2.settings import SettingCodes, Settings
from hypercorn.events import Closed, RawData
from hypercorn.events import Event as WireEvent
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.events import Body, EndBody, Request, Response
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.protocol.ws_stream import WSStream

from pumice.actors.gateway.budget import LoopTurns
from pumice.actors.gateway.forms import encode
from pumice.actors.gateway.identity.authenticator import OPEN, READS
from pumice.actors.gateway.problems import ApiError, bad_request, failure, headers_too_large, internal
from pumice.actors.gateway.request.exchange import CUT, PEER, ClientGoneError, PeerSubject

HEADERS: Final = 64 * 1024
"""Bytes of a request's head, at most."""
MOST_REFUSED: Final = 1_000
"""Streams that are refused on a connection before it is closed."""
PORTION: Final = 1024
"""Bytes of HTTP/2 that are read from a connection before others have their turn: about fifty requests."""
PROBES: Final = tuple(f"{method} /{path}".encode() for method in READS for path in OPEN)
"""Beginnings of requests that have no turn; a proper look at the path follows."""
_NO_LIMIT: Final = 2**31 - 1

_STATE: Final = 4
_SEND: Final = 8
"""Places of arguments of hypercorn's wrapper; `send` is a method of the server of the connection."""

log = logging.getLogger(__name__)


def mend() -> None:
    """Make hypercorn use these classes. A second call changes nothing."""
    module: Any = hypercorn.protocol
    module.H2Protocol, module.H11Protocol = RefusingH2, BoundedH11
    for name in ("h2", "h11"):
        getattr(module, name).WSStream = TalkativeWebSocket
        getattr(module, name).HTTPStream = EndingStream


class LastingWrapper(ProtocolWrapper):
    """Closes a connection whose data hypercorn cannot read. Hypercorn lets the error through to its server, which
    writes a traceback. Also has each request know the certificate that its client has shown.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        # A state of its own: hypercorn hands the same one to all connections, and copies it into each request.
        own = [*given]
        server = given[_SEND].__self__
        own[_STATE] = {**given[_STATE], PEER: _peer_of(server), CUT: server.cut}
        super().__init__(*own, **named)
        self._turns: LoopTurns = server.config.turns
        self._is_fresh = True  # nothing was read yet

    async def handle(self, event: WireEvent) -> None:
        """Handle an event like hypercorn, except for its errors. The application runs in another task: its errors do
        not come here.
        """
        if self._is_fresh and isinstance(event, RawData) and event.data:
            self._is_fresh = False
            # Thousands of connections that are opened together would delay a probe. Later requests wait for a turn once
            # they are read, and not twice: beside 200 watches a second wait costs a create a quarter of its time.
            if not event.data.startswith(PROBES):
                await self._turns.take()
        try:
            await super().handle(event)
        except Exception as error:  # noqa: BLE001 - h2, hpack, wsproto and hypercorn itself each have their own
            log.debug("a connection was closed, for what its client sent cannot be read: %r", error)
            await self.send(Closed())


def _peer_of(server: Any) -> PeerSubject:
    """Return the subject of a client's certificate, after the handshake has checked it; () without one."""
    writer = getattr(server, "writer", None)
    secure = server.stream if writer is None else writer.get_extra_info("ssl_object")
    shown: Any = getattr(secure, "getpeercert", None)
    certificate = shown() if shown is not None else None
    return certificate.get("subject", ()) if certificate else ()


class RefusingH2(H2Protocol):
    """Refuses single streams. h2 itself would end the connection with all the others when one is too many."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._begun: list[EndingStream] = []
        self._refused = 0

    async def initiate(self, headers: list[tuple[bytes, bytes]] | None = None, settings: bytes | None = None) -> None:
        """Tell the client the limit, and keep h2 from enforcing it."""
        await super().initiate(headers, settings)
        kept = {SettingCodes(code): value for code, value in self.connection.local_settings.items()}
        kept[SettingCodes.MAX_CONCURRENT_STREAMS] = _NO_LIMIT
        self.connection.local_settings = Settings(client=False, initial_values=kept)

    async def handle(self, event: WireEvent) -> None:
        """Handle an event like hypercorn, but in portions: a client may send thousands of requests together, and others
        have their turn in between.
        """
        if isinstance(event, RawData) and len(event.data) > PORTION:
            for first in range(0, len(event.data), PORTION):
                await super().handle(RawData(event.data[first : first + PORTION]))
                await lowlevel.checkpoint()
            return
        await super().handle(event)

    async def _create_stream(self, request: Any) -> None:
        await super()._create_stream(request)
        stream = self.streams.get(request.stream_id)
        if isinstance(stream, EndingStream):
            self._begun.append(stream)

    async def _handle_events(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case RequestReceived() if code := self._problem(event):
                    self._refused += 1
                    with suppress(StreamClosedError):  # its client has reset it meanwhile
                        self.connection.reset_stream(event.stream_id, code)
                case DataReceived() if event.stream_id not in self.streams:
                    # of a stream that was refused, or answered before its body came: hypercorn would look it up in vain
                    self.connection.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
                case _:
                    await super()._handle_events([event])
        await self._flush()
        if self._refused > MOST_REFUSED:
            self.connection.close_connection(ErrorCodes.ENHANCE_YOUR_CALM)
            await self._flush()
            await self.send(Closed())

    def _problem(self, request: RequestReceived) -> ErrorCodes | None:
        """Return the error for which a stream is refused, if any."""
        # A stream that its client has reset counts until its handler has ended: else a client that opens and resets
        # (CVE-2023-44487) has any number of handlers at work. Twice as many, for they do not end immediately.
        most = self.config.h2_max_concurrent_streams
        if len(self._begun) >= 2 * most:
            self._begun = [one for one in self._begun if one.is_running]
        if len(self.streams) >= most or len(self._begun) >= 2 * most:
            return ErrorCodes.REFUSED_STREAM
        headers = {bytes(name): bytes(value) for name, value in request.headers or ()}
        needed = [headers.get(name, b"") for name in (b":method", b":path")]
        return None if all(value and value.isascii() for value in needed) else ErrorCodes.PROTOCOL_ERROR


class BoundedH11(H11Protocol):
    """Refuses a head beyond the limit however it comes. h11 checks the size only while it waits for more, and data that
    it gets together may be as long again.

    The head of an answer whose length is known goes out with its body: as two writes, which wake the client twice.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._send_on = self.__dict__.pop("send")  # the one below is the class's: no connection refers to itself
        self._head, self._body_follows = b"", False

    async def stream_send(self, event: StreamEvent) -> None:
        """Send like hypercorn."""
        self._body_follows = isinstance(event, Response) and any(name == b"content-length" for name, _ in event.headers)
        await super().stream_send(event)

    async def send(self, event: WireEvent) -> None:
        """Send the head of an answer when its body comes."""
        if isinstance(event, RawData):
            data = self._head + (event.data or b"")
            self._head = data if self._body_follows else b""
            if self._head or not data:
                return
            event = RawData(data=data)
        await self._send_on(event)

    async def _create_stream(self, request: Any) -> None:
        size = len(request.target) + sum(len(name) + len(value) + 4 for name, value in request.headers)
        if size <= HEADERS:
            await super()._create_stream(request)
            return
        await self._refuse(headers_too_large(HEADERS))
        await self.send(Closed())

    async def _send_error_response(self, status_code: int) -> None:
        large = status_code == headers_too_large(HEADERS).refused.code
        await self._refuse(headers_too_large(HEADERS) if large else bad_request("not a valid request of HTTP/1.1"))

    async def _refuse(self, error: ApiError) -> None:
        headers, body = status_of(error)
        await self.stream_send(Response(stream_id=1, status_code=error.refused.code, headers=headers))
        await self.stream_send(Body(stream_id=1, data=body))
        await self.stream_send(EndBody(stream_id=1))


class EndingStream(HTTPStream):
    """Ends the application when its client has left, or has reset the stream. Hypercorn lets it go on: a list would be
    written to its end without a reader.
    """

    is_running = False

    async def handle(self, event: StreamEvent) -> None:
        """Handle an event like hypercorn."""
        if isinstance(event, Request):
            self.is_running = True
        await super().handle(event)

    async def app_send(self, message: Any) -> None:
        """Send like hypercorn; None is the application's end. Raises ClientGoneError."""
        if message is None:
            self.is_running = False
        elif self.closed:
            raise ClientGoneError
        await super().app_send(message)


class TalkativeWebSocket(WSStream):
    """Gives in a Status the reason why WebSockets are refused, and compresses nothing, like a kube-apiserver."""

    async def handle(self, event: StreamEvent) -> None:
        """Handle an event like hypercorn, except for the request."""
        if isinstance(event, Request):  # compression would be work for every event and every watch
            headers = [each for each in event.headers if each[0].lower() != b"sec-websocket-extensions"]
            event = Request(event.stream_id, headers, event.http_version, event.method, event.raw_path, event.state)
        await super().handle(event)

    async def _send_error_response(self, status_code: int) -> None:
        if status_code == 400:
            error = bad_request("not a WebSocket handshake of version 13 (RFC 6455) with a Sec-WebSocket-Key")
        else:
            error = internal("a WebSocket was neither accepted nor refused")
        headers, body = status_of(error)
        await self.send(Response(stream_id=self.stream_id, status_code=status_code, headers=headers))
        await self.send(Body(stream_id=self.stream_id, data=body))
        await self.send(EndBody(stream_id=self.stream_id))


def status_of(error: ApiError) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return the headers and body of an answer after which the connection ends."""
    body = encode(failure(error.refused))
    return [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ], body
