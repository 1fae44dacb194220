# SPDX-License-Identifier: Apache-2.0
"""Reading from a real API server: one request, or a stream of lines. A RemoteApi cannot write.

Throttling (429, or 5xx with Retry-After) is waited out as the server asks, an expired credential renewed (source:
client-go's `rest.Request`); what remains is a RemoteError.
"""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Final, NamedTuple, Self

import anyio
import httpx
import msgspec

from pumice.actors.errors import BrokenAnswerError, RemoteError
from pumice.actors.real_clusters.remote.access import Credential, Credentials, credentials_of, proxy_of, trust_of
from pumice.config.kubeconfig import ClusterAccess
from pumice.core.objects.metadata import Object, is_mapping

Query = Mapping[str, str]

OK: Final = 200
REDIRECTED: Final = 300
UNAUTHORIZED: Final = 401
TOO_MANY: Final = 429
INTERNAL: Final = 500
# client-go's `maxRetries` (`rest/request.go`).
TRIES: Final = 10
# The dialer's timeout in client-go's `transport/cache.go`.
CONNECT_S: Final = 30.0
ANSWER_S: Final = 60.0
EXCERPT: Final = 120
KEPT_OPEN: Final = 8
"""Connections, those of watches included, beyond which one that is not needed just now is closed."""
KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
        if hasattr(socket, name)
    ),
)
"""A server that is gone without a word is noticed by the kernel (source: Go's `net.Dialer`)."""


class RemoteCall(NamedTuple):
    """Request without its server. `content`: a body of `content_type`, b"" for none."""

    method: str
    content: bytes = b""
    content_type: str = ""


READ: Final = RemoteCall("GET")


class RemoteApi:
    """A reader of an API server, to be used as `async with`. `now`: seconds since the epoch; `transport` stands for the
    network in tests.
    """

    def __init__(
        self,
        access: ClusterAccess,
        *,
        now: Callable[[], float] = time.time,
        credentials: Credentials | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.server = access.server
        self._access = access
        self._credentials = credentials or credentials_of(access, now)
        self._transport = transport
        self._extensions = {"sni_hostname": access.server_name} if access.server_name else {}
        self._clients: dict[tuple[bytes, bytes], httpx.AsyncClient] = {}
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        with anyio.CancelScope(shield=True):
            await self._open.aclose()

    async def get(self, path: str, query: Query | None = None) -> Object:
        """Return the object at a path. Raises RemoteError, CredentialsError."""
        return await self._answer(path, query, READ, ANSWER_S)

    @asynccontextmanager
    async def lines(self, path: str, query: Query, silence_s: float) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Yield the lines of an answer as they come. Raises RemoteError without any, or without any for `silence_s`."""
        async with self._asked(path, query, silence_s) as answer:
            if answer.status_code != OK:
                # A streamed answer does not read its body by itself, and the server's reason stands there.
                await _read(path, answer)
                # For other codes of success there is no error text, but they are not the answer to a watch either.
                raise _error(path, answer) or RemoteError(f"GET {path}: {answer.status_code}", answer.status_code)
            found = _lines(path, answer)
            try:
                yield found
            finally:
                await _run_out(found)

    async def _answer(self, path: str, query: Query | None, call: RemoteCall, silence_s: float) -> Object:
        """Return the answered object; the request is repeated as long as the server names a time for it."""
        for attempt in range(TRIES):
            async with self._asked(path, query, silence_s, call) as answer:
                await _read(path, answer, call)
                error = _error(path, answer, call)
                if error is None:
                    return _decoded(path, answer.content)
            if error.retry_after_s is None or attempt == TRIES - 1:
                raise error
            await anyio.sleep(error.retry_after_s)
        raise AssertionError("the last try has raised")

    @asynccontextmanager
    async def _asked(
        self, path: str, query: Query | None, silence_s: float, call: RemoteCall = READ
    ) -> AsyncGenerator[httpx.Response]:
        """Return the head of an answer; a request with a refused credential is repeated once with another."""
        for again in (True, False):
            shown = await self._credentials.current()
            client = await self._client(shown)
            request = client.build_request(
                call.method,
                path,
                params=query,
                headers=_headers(shown, call),
                content=call.content or None,
                # Counted between two reads and not for the whole answer: a watch stays open for minutes.
                timeout=httpx.Timeout(silence_s, connect=CONNECT_S),
                extensions=self._extensions,
            )
            try:
                answer = await client.send(request, stream=True)
            except (httpx.HTTPError, OSError) as error:
                raise _unreachable(self.server, error) from error
            try:
                if answer.status_code == UNAUTHORIZED:
                    self._credentials.refused()
                    if again:
                        continue
                yield answer
                return
            finally:
                with anyio.CancelScope(shield=True):
                    await answer.aclose()

    async def _client(self, shown: Credential) -> httpx.AsyncClient:
        """Return a client for each shown certificate, which is part of the handshake."""
        key = (shown.certificate, shown.key)
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = await self._open.enter_async_context(self._made(shown))
        return client

    def _made(self, shown: Credential) -> httpx.AsyncClient:
        headers = [("Accept", "application/json"), ("User-Agent", "pumice"), *self._access.impersonation]
        transport = self._transport or self._network(shown)
        # `proxy_of` has looked at the environment already.
        return httpx.AsyncClient(base_url=self.server, headers=headers, transport=transport, trust_env=False)

    def _network(self, shown: Credential) -> httpx.AsyncBaseTransport:
        return connections(self._access, shown)()


def connections(access: ClusterAccess, shown: Credential) -> Callable[[], httpx.AsyncBaseTransport]:
    """Return what makes pools of connections. Raises ConfigError, CredentialsError."""
    return partial(
        httpx.AsyncHTTPTransport,
        verify=trust_of(access, shown),
        proxy=proxy_of(access),
        # No limit in all: each watch keeps a connection, and lists would wait for one for ever.
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=KEPT_OPEN),
        socket_options=KEEPALIVE,
    )


def _headers(shown: Credential, call: RemoteCall) -> dict[str, str]:
    headers = {"Authorization": shown.header} if shown.header else {}
    return {**headers, "Content-Type": call.content_type} if call.content_type else headers


async def _read(path: str, answer: httpx.Response, call: RemoteCall = READ) -> None:
    try:
        await answer.aread()
    except httpx.HTTPError as error:
        raise BrokenAnswerError(f"{call.method} {path}: the answer broke off: {_words(error)}") from error


async def _lines(path: str, answer: httpx.Response) -> AsyncGenerator[bytes]:
    """Yield lines, cut at line feeds alone: JSON texts may contain other line ends. Half a line at the end is
    dropped.
    """
    rest = b""
    try:
        async for part in answer.aiter_bytes():
            *whole, rest = (rest + part).split(b"\n")
            for line in whole:
                if line:
                    yield line
    except httpx.HTTPError as error:
        raise RemoteError(f"GET {path}: the stream broke off: {_words(error)}") from error


async def _run_out(lines: AsyncGenerator[bytes]) -> None:
    """End a stream that its reader leaves early, with its wait cancelled from inside: httpx's own generators then end
    in order, which no other code can reach.
    """
    with anyio.CancelScope() as scope, suppress(RemoteError):
        scope.cancel()
        async for _ in lines:
            pass


def _decoded(path: str, content: bytes) -> Object:
    found = decoded(content)
    if found is None:
        raise RemoteError(f"GET {path}: expected a JSON object, was {content[:EXCERPT]!r}: no Kubernetes API?")
    return found


def decoded(content: bytes) -> Object | None:
    """Return the object in a JSON text; None without one."""
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if is_mapping(found) else None


def _error(path: str, answer: httpx.Response, call: RemoteCall = READ) -> RemoteError | None:
    code = answer.status_code
    if OK <= code < REDIRECTED:
        return None
    status = decoded(answer.content) or {}
    why = str(status.get("message") or answer.text[:EXCERPT] or answer.reason_phrase)
    return RemoteError(
        f"{call.method} {path}: {code}: {why}", code, str(status.get("reason") or ""), _retry_after_s(answer)
    )


def _retry_after_s(answer: httpx.Response) -> float | None:
    """Return the seconds to wait, only where repeating the same request can succeed."""
    if answer.status_code != TOO_MANY and answer.status_code < INTERNAL:
        return None
    # HTTP allows a date as well; API servers send seconds, and client-go reads nothing else.
    told = answer.headers.get("retry-after", "")
    return float(told) if told.isascii() and told.isdigit() else None


def _unreachable(server: str, error: Exception) -> RemoteError:
    return RemoteError(f"{server}: no answer: {_words(error)}")


def _words(error: BaseException) -> str:
    """Return the first words in an error and its causes: over trio only the cause names a refused certificate."""
    if isinstance(error, httpx.TimeoutException):  # its words are those of a cancelled scope
        return "timeout"
    each: BaseException | None = error
    while each is not None:
        if str(each):
            return str(each)
        each = each.__cause__ or each.__context__
    return type(error).__name__
