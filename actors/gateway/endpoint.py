"""The one place where a request is let in, and where errors become answers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

import anyio
from starlette.types import ASGIApp

from pumice.actors.gateway.forms import encode
from pumice.actors.gateway.front import Front
from pumice.actors.gateway.problems import ApiError, failed, forbidden, internal, unavailable, wrong_method
from pumice.actors.gateway.request.exchange import ClientGoneError, Exchange, Receive, Scope, Send
from pumice.actors.gateway.security import READS
from pumice.actors.gateway.statuses import failure
from pumice.config.errors import WorldError

F = TypeVar("F", bound=Front)
LEFTOVER: Final = 1024 * 1024
"""Bytes of a refused request's body that are read and dropped rather than to close the connection."""

log = logging.getLogger(__name__)


class Endpoint(Generic[F]):
    """One route: lets in (but where the handler `admits` by itself), answers, and makes a Status of whatever is
    refused.
    """

    def __init__(
        self,
        site: F,
        handler: Callable[[F, Exchange], Awaitable[None]],
        *,
        reads_only: bool = False,
        admits: bool = False,
    ) -> None:
        self._site = site
        self._handler = handler
        self._reads_only = reads_only
        self._admits = admits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        exchange = Exchange(scope, receive, send)
        await self._site.longest.timed(self._serve(exchange), exchange.method, exchange.path)

    async def _serve(self, exchange: Exchange) -> None:
        try:
            with self._site.open.request():
                await self._answer(exchange)
        except ClientGoneError:
            return
        except ApiError as error:
            await refuse(exchange, error)
        except WorldError as error:
            await refuse(exchange, failed(str(error)))
        except Exception as error:
            log.exception("bug in Pumice: the gateway could not answer %s %s", exchange.method, exchange.path)
            await refuse(exchange, internal(repr(error)))

    async def _answer(self, exchange: Exchange) -> None:
        if not self._admits:
            self._site.door.admit(exchange)
        if self._site.open.closing:
            raise unavailable("the server is shutting down")
        if self._reads_only and exchange.method not in READS:
            raise wrong_method(exchange.method)
        if self._site.settings.reads_only and exchange.method not in READS and not self._admits:
            raise forbidden("this is a copy of a cluster, which nobody may change: ask that cluster itself")
        await self._handler(self._site, exchange)


async def refuse(exchange: Exchange, error: ApiError) -> None:
    """Answer with a Status; a stream that has begun can only be broken off."""
    if exchange.started:
        return  # hypercorn closes the connection of an answer without an end
    refused, headers = error.refused, error.headers
    with anyio.CancelScope(shield=True):
        if not await exchange.pass_over(LEFTOVER):
            headers = {**headers, "connection": "close"}
        await exchange.answer(refused.code, encode(failure(refused, error.token)), headers=headers)


class Unslashed:
    """Takes a slash off the end of the path: `/version/` is `/version`, as some clients write it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        path = scope.get("path", "/")
        if path.endswith("/") and path != "/":
            scope = {**scope, "path": path.rstrip("/") or "/"}
        await self._app(scope, receive, send)
