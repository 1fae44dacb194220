# SPDX-License-Identifier: Apache-2.0
"""The front of every server, of a run or of a journal: authentication, open requests, errors as answers."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Generic, TypeVar

import anyio

from pumice.actors.gateway.advice import AdviceDesk
from pumice.actors.gateway.budget import REQUEST, ByteBudget, LoopTurns, NoRoomError, Share
from pumice.actors.gateway.forms import answer_status
from pumice.actors.gateway.identity.authenticator import READS, Authenticator, is_probe
from pumice.actors.gateway.problems import (
    ApiError,
    failed,
    failure,
    forbidden,
    internal,
    too_many,
    unavailable,
    wrong_method,
)
from pumice.actors.gateway.request.exchange import CUT, App, ClientGoneError, Exchange, Receive, Scope, Send
from pumice.actors.gateway.request.upgrades import as_http
from pumice.actors.gateway.settings import GatewaySettings
from pumice.actors.runtime.longest import Longest
from pumice.cluster.rbac.rules import User
from pumice.config.errors import WorldError

# --- Open requests, which a server that stops ends first
# A watch would otherwise keep its connection, and the server that waits for it, open for ever.


class Open:
    """All open requests. `closing`: no more are accepted; `ended`: for good."""

    def __init__(self) -> None:
        self.closing = self.ended = False
        self._requests: set[anyio.CancelScope] = set()
        self._endless: set[anyio.CancelScope] = set()
        self._none = anyio.Event()

    def __len__(self) -> int:
        return len(self._requests)

    @contextmanager
    def request(self) -> Generator[None]:
        """Count one more request, until the block ends or the server breaks it off."""
        with anyio.CancelScope() as scope:
            self._requests.add(scope)
            try:
                yield
            finally:
                self._requests.discard(scope)
                if not self._requests:
                    self._none.set()

    @contextmanager
    def endless(self, scope: anyio.CancelScope) -> Generator[None]:
        """Mark `scope` as one that lasts as long as the client likes; it is the first to be cut."""
        self._endless.add(scope)
        # `end` has been through the streams already: this one would use up the whole grace time.
        if self.closing:
            scope.cancel()
        try:
            yield
        finally:
            self._endless.discard(scope)

    async def end(self, grace_s: float) -> None:
        """Take no more, end the streams, give the rest a moment, then break them off."""
        self.closing = self.ended = True
        for scope in list(self._endless):
            scope.cancel()
        with anyio.move_on_after(grace_s):
            await self._wait_empty()
        self.cut()

    def cut(self) -> None:
        """Break off all requests immediately."""
        self.closing = True
        for scope in list(self._requests):
            scope.cancel()

    @property
    def is_down(self) -> bool:
        """Return whether the server is to come back."""
        return self.closing and not self.ended

    @contextmanager
    def down(self) -> Generator[None]:
        """Break off all requests, and accept none until the block ends."""
        self.cut()
        try:
            yield
        finally:
            self.closing = self.ended

    async def _wait_empty(self) -> None:
        while self._requests:
            self._none = anyio.Event()
            await self._none.wait()


@dataclass(kw_only=True)
class Front:
    """The front. `open`: the open requests; `longest`: the one that blocked the event loop longest; `turns`: of all."""

    settings: GatewaySettings
    longest: Longest = field(default_factory=Longest)
    open: Open = field(default_factory=Open)
    turns: LoopTurns = field(default_factory=LoopTurns)

    @cached_property
    def desk(self) -> AdviceDesk:
        """Return the desk for questions that take long."""
        settings = self.settings
        return AdviceDesk(settings.adviser, settings.question_limit, settings.question_s, settings.find_adviser)

    @cached_property
    def budget(self) -> ByteBudget:
        """Return the limit on what is held for clients."""
        return ByteBudget(self.settings.client_bytes)

    @cached_property
    def authenticator(self) -> Authenticator:
        """Return the authenticator, which decides which requests to serve."""
        return Authenticator(self.settings)

    async def authenticate(self, exchange: Exchange) -> None:
        """Find out who sends a request. Raises ApiError (401, 403)."""
        exchange.user = await self.authenticator.user_of(exchange)

    async def admit(self, exchange: Exchange) -> None:
        """Check that the sender may do what it asks for. Raises ApiError (401, 403)."""
        await self.authenticate(exchange)

    def namespaces_seen(self, user: User, *, whole: bool = False) -> tuple[str, ...] | None:
        """Return the namespaces whose pods a user may ask about, None for all. `whole`: only all will do. Raises
        ApiError (403).
        """
        return None


# --- The endpoint: where errors become answers

F = TypeVar("F", bound=Front)
LEFTOVER: Final = 1024 * 1024
"""Bytes of a refused request's body that are read and dropped rather than to close the connection."""

log = logging.getLogger(__name__)


class Endpoint(Generic[F]):
    """One route: it authenticates (unless the handler `admits` by itself), answers, and makes a Status of every
    refusal.
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
        """Handle one request (ASGI)."""
        budget = self._site.budget
        state: dict[str, Callable[[], None]] = scope.get("state") or {}
        share = Share(budget, state.get(CUT, _not_cut))
        exchange = Exchange(scope, receive, send, share)
        await self._site.longest.timed(self._serve(exchange), exchange.method, exchange.path)

    async def _serve(self, exchange: Exchange) -> None:
        share = exchange.share
        try:
            with self._site.open.request():
                if not is_probe(exchange.path):
                    await self._site.turns.take()
                if share is not None:
                    await share.budget.demand(share, REQUEST)
                await self._answer(exchange)
        except ClientGoneError:
            return
        except NoRoomError:
            await refuse(exchange, too_many("the server holds as many bytes for its clients as it may"))
        except ApiError as error:
            await refuse(exchange, error)
        except WorldError as error:
            await refuse(exchange, failed(str(error)))
        except Exception as error:
            log.exception("bug in Pumice: the gateway could not answer %s %s", exchange.method, exchange.path)
            await refuse(exchange, internal(repr(error)))
        finally:
            if share is not None:
                share.budget.give_back(share)

    async def _answer(self, exchange: Exchange) -> None:
        if not self._admits:
            await self._site.admit(exchange)
        if self._site.open.closing:
            raise unavailable("the server is shutting down")
        if self._reads_only and exchange.method not in READS:
            raise wrong_method(exchange.method)
        if self._site.settings.reads_only and exchange.method not in READS and not self._admits:
            raise forbidden("this is a read-only copy of a cluster: send changes to that cluster itself")
        await self._handler(self._site, exchange)


def _not_cut() -> None:
    """Do nothing: the application runs without a server, in tests."""


async def refuse(exchange: Exchange, error: ApiError) -> None:
    """Answer with a Status; a stream that has begun can only be broken off."""
    if exchange.started:
        return  # hypercorn closes the connection of an answer without an end
    refused, headers = error.refused, error.headers
    with anyio.CancelScope(shield=True):
        if not await exchange.pass_over(LEFTOVER):
            headers = {**headers, "connection": "close"}
        await answer_status(exchange, refused.code, failure(refused, error.token), headers)


class Application:
    """The ASGI application of a server: the first route whose pattern fits a path gets the request.

    A slash at the end of a path is left out: `/version/` is `/version`, as some clients write it.
    """

    def __init__(self, routes: Sequence[tuple[str, App]]) -> None:
        # A path may contain a line break (%0A), which `.*` of the last route must match as well.
        self._routes = [(re.compile(pattern, re.DOTALL), app) for pattern, app in routes]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request (ASGI)."""
        if scope["type"] == "lifespan":
            # Hypercorn waits for an answer to each before it serves and before it ends.
            for _ in ("startup", "shutdown"):
                await send({"type": f"{(await receive())['type']}.complete"})
            return
        scope, receive, send = as_http(scope, receive, send)
        path = scope["path"] = scope["path"].rstrip("/") or "/"
        # A client that has left while its answer was on its way: no client is left to answer.
        with suppress(ClientGoneError):
            await next(app for pattern, app in self._routes if pattern.fullmatch(path))(scope, receive, send)
