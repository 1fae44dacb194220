# SPDX-License-Identifier: Apache-2.0
"""Requests of the page: its files, the kind of this server, the live state, and a node's pods."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import parse_qs

import anyio

from pumice.actors.gateway.forms import encode
from pumice.actors.gateway.front import Front
from pumice.actors.gateway.identity.authenticator import COOKIE, READS, cookie_of
from pumice.actors.gateway.page import assets
from pumice.actors.gateway.problems import ApiError, no_such_path, unauthorized, unavailable, wrong_method
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.site import Site, guarded
from pumice.cluster.rbac.rules import NOBODY, AccessRequest
from pumice.core.messages.boards import ReadResidents, ResidentsRead

if TYPE_CHECKING:
    from pumice.actors.gateway.identity.authenticator import Authenticator

# --- The form that asks a browser for a token
# The token is given once and never stands in an address. The cookie is not one: it lets its holder read, from pages of
# this server only, and ends with the token it was made of.

FORM: Final = 8192
"""Bytes of a form."""


async def log_in(authenticator: Authenticator, exchange: Exchange, *, secure: bool) -> None:
    """Set the cookie and go to the page, or show the form again for a wrong token. Raises ApiError (403, 413)."""
    authenticator.admit_to_login(exchange)
    body = await exchange.body(FORM)
    given = parse_qs(body.decode("utf-8", "replace"), max_num_fields=4).get("token", [""])[0]
    if authenticator.of_known(given) is None:
        await assets.send(exchange, assets.WRONG_TOKEN if given.strip() else assets.LOGIN, 401)
        return
    await _go_home(exchange, cookie_of(given.strip()), secure=secure)


async def log_out(authenticator: Authenticator, exchange: Exchange, *, secure: bool) -> None:
    """Take the cookie away. Raises ApiError (403)."""
    authenticator.admit_to_login(exchange)
    await exchange.body(FORM)
    await _go_home(exchange, "", secure=secure)


async def _go_home(exchange: Exchange, value: str, *, secure: bool) -> None:
    # HttpOnly: no script reads it; Strict: no page of another site makes a browser send it.
    cookie = f"{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict"
    cookie += "; Secure" if secure else ""
    cookie += "" if value else "; Max-Age=0"
    # 303: the browser follows with a GET, whatever it has sent.
    await exchange.answer(303, b"", "text/plain", {**assets.HEADERS, "location": "/", "set-cookie": cookie})


F = TypeVar("F", bound=Front)
NODES: Final = AccessRequest("list", resource="nodes")
QUEUES: Final = AccessRequest("list", "scheduling.volcano.sh", "queues")
"""Objects that the board of a cluster shows, besides its pods."""
UNAUTHORIZED: Final = 401
_FORMS: Final = {"login": log_in, "logout": log_out}
ALIVE_S: Final = 15.0
"""A silent stream sends a sign of life now and then, so that a client that has gone is noticed."""
STREAM: Final = "text/event-stream; charset=utf-8"


def wants_page(exchange: Exchange) -> bool:
    """Return whether a browser asks, for a person to look at the answer."""
    listed = (part.partition(";")[0].strip() for part in exchange.header("accept").split(","))
    return exchange.method in READS and "text/html" in listed


async def home(front: Front, exchange: Exchange) -> None:
    """Answer with the page itself, or the form where a token is required."""
    try:
        await front.authenticate(exchange)
    except ApiError as error:
        if error.refused.code != UNAUTHORIZED:
            raise
    if exchange.user is NOBODY:
        await assets.send(exchange, assets.LOGIN, UNAUTHORIZED)
        return
    await assets.send(exchange, assets.HOME)


def page_with(
    answers: Mapping[str, Callable[[F, Exchange], Awaitable[None]]],
) -> Callable[[F, Exchange], Awaitable[None]]:
    """Answer everything under /page: its files, the form, and the requests by the first part of the path."""

    async def page(front: F, exchange: Exchange) -> None:
        name = exchange.path.removeprefix("/page/")
        if (form := _FORMS.get(name)) is not None:
            if exchange.method != "POST":
                raise wrong_method(exchange.method)
            await form(front.authenticator, exchange, secure=front.settings.certificate is not None)
            return
        if exchange.method not in READS:
            raise wrong_method(exchange.method)
        if (answer := answers.get(name.partition("/")[0])) is not None:
            await front.authenticate(exchange)
            await answer(front, exchange)
            return
        # Files need no token: the form that asks for it has a style and an icon, too.
        front.authenticator.admit_to_login(exchange)
        await assets.send(exchange, name)

    return page


async def _mode(site: Site, exchange: Exchange) -> None:
    """Answer how the page must behave on this server."""
    if exchange.user is NOBODY:
        raise unauthorized()
    seen = site.namespaces_seen(exchange.user)
    plain = {
        "live": True,
        "token": site.authenticator.asks,
        "scheduler": site.cache is not None,
        "namespaces": seen,
    }
    await exchange.answer(200, encode(plain), headers=assets.HEADERS)


async def _node(site: Site, exchange: Exchange) -> None:
    """Answer /page/nodes/NAME with the pods on the node."""
    site.namespaces_seen(exchange.user, whole=True)
    site.rights.demand(exchange.user, NODES)
    name = exchange.path.removeprefix("/page/nodes/")
    if site.cache is None:
        raise unavailable("this run has no scheduler, which is what knows the pods counted on a node")
    found = await guarded(site.cache.ask(ReadResidents(name)))
    if not isinstance(found, ResidentsRead) or not found.known:
        raise no_such_path()
    await exchange.answer(200, encode(found), headers=assets.HEADERS)


async def _live(site: Site, exchange: Exchange) -> None:
    """Send server-sent events, until the browser leaves or the server stops. They are about the whole cluster."""
    site.namespaces_seen(exchange.user, whole=True)
    for asked in (NODES, QUEUES):
        site.rights.demand(exchange.user, asked)
    with site.watching(), site.pages.listening():
        await exchange.begin(STREAM, assets.HEADERS)
        async with anyio.create_task_group() as tasks:
            with site.open.endless(tasks.cancel_scope):
                tasks.start_soon(functools.partial(_until_gone, exchange, tasks.cancel_scope))
                await _tell(site, exchange)
        await exchange.end()


async def _tell(site: Site, exchange: Exchange) -> None:
    position = 0
    while True:
        # What is sent when nothing comes in time.
        told = b": nothing new\n\n"
        with anyio.move_on_after(ALIVE_S):
            position, told = await site.pages.after(position)
        await exchange.chunk(told)


async def _until_gone(exchange: Exchange, scope: anyio.CancelScope) -> None:
    await exchange.hung_up()
    scope.cancel()


page: Final = page_with({"mode": _mode, "nodes": _node, "live": _live})
"""Of a running system."""
