# SPDX-License-Identifier: Apache-2.0
"""WebSockets as a kube-apiserver has them (`apiserver/pkg/endpoints/handlers/watch.go`, `golang.org/x/net/websocket`).

A request that asks for one is a GET like any other. Only an answer that comes in frames (a watch, a log) takes the
offer; all others are plain HTTP, so a client that is refused reads the Status.
"""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64decode
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Frames = Callable[[bytes, str], list["str | bytes"]]
"""Text or binary frames of a part of an answer, under a subprotocol."""

SOCKET: Final = "pumice.socket"
"""The key of a request's scope that holds its `Socket`."""
BEARER: Final = "base64url.bearer.authorization.k8s.io."
"""A browser can set no Authorization: its token is a subprotocol (`apiserver/pkg/authentication/request/websocket`)."""
BASE64: Final = "base64.binary.k8s.io"


def raw(part: bytes, subprotocol: str) -> list[str | bytes]:
    """Return a log: bytes, or letters that stand for them where the client asked for those (`wsstream/stream.go`)."""
    return [b64encode(part).decode() if subprotocol == BASE64 else part]


class Socket:
    """A client's offer of a WebSocket, behind the messages of plain HTTP. `frames`: set by a handler that takes the
    offer.
    """

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        offered: list[str] = scope.get("subprotocols", [])
        self.token = next((_token(name) for name in offered if name.startswith(BEARER)), "")
        self.frames: Frames | None = None
        # Not the token: it is not a protocol, and the answer must not repeat it.
        self._subprotocol = next((name for name in offered if not name.startswith(BEARER)), None)
        self._receive = receive
        self._send = send

    async def receive(self) -> Message:
        """Return a request without a body, then the end; data from the client over the socket is skipped."""
        while True:
            message = await self._receive()
            if message["type"] == "websocket.connect":
                return {"type": "http.request", "body": b"", "more_body": False}
            if message["type"] == "websocket.disconnect":
                return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Send a part of the answer, as frames if a handler took the offer."""
        if self.frames is None:
            await self._refuse(message)
        elif message["type"] == "http.response.start":
            await self._send({"type": "websocket.accept", "subprotocol": self._subprotocol, "headers": []})
        else:
            # An empty part is left out: a client would read it as an event.
            for frame in self.frames(message["body"], self._subprotocol or "") if message["body"] else ():
                await self._send({"type": "websocket.send", "text" if isinstance(frame, str) else "bytes": frame})
            if not message.get("more_body"):
                await self._send({"type": "websocket.close", "code": 1000})

    async def _refuse(self, message: Message) -> None:
        if message["type"] == "http.response.start":  # nothing else can follow on this connection
            kept = [each for each in message["headers"] if each[0] != b"connection"]
            message = {**message, "headers": [*kept, (b"connection", b"close")]}
        await self._send({**message, "type": f"websocket.{message['type']}"})


def as_http(scope: Message, receive: Receive, send: Send) -> tuple[Message, Receive, Send]:
    """Return a copy of the request's scope and its channels: of HTTP alone, whatever it came as."""
    if scope["type"] != "websocket":
        return {**scope}, receive, send
    socket = Socket(scope, receive, send)
    return {**scope, "type": "http", "method": "GET", SOCKET: socket}, socket.receive, socket.send


def _token(subprotocol: str) -> str:
    """Return the token in a subprotocol; "" for a text that is not valid base64 (kube-apiserver: unauthorized)."""
    letters = subprotocol.removeprefix(BEARER)
    try:
        return urlsafe_b64decode(letters + "=" * (-len(letters) % 4)).decode()
    except ValueError:
        return ""
