# SPDX-License-Identifier: Apache-2.0
"""Authentication: who sends a request, by its token, its certificate or a browser's cookie."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pumice.actors.gateway.identity.users import ADMIN, authenticated, user_of_certificate
from pumice.actors.gateway.problems import forbidden, unauthorized
from pumice.cluster.rbac.rules import NOBODY, User

if TYPE_CHECKING:
    from pumice.actors.gateway.request.exchange import Exchange
    from pumice.actors.gateway.settings import GatewaySettings

# A page in a user's browser can send requests to the loopback as well. It gives itself away by its Origin, or
# (after its name was made to point here) by a Host that is not an address of this server.

COOKIE: Final = "pumice"
READS: Final = ("GET", "HEAD")
_USUAL_PORTS: Final = {"http": ":80", "https": ":443"}
OPEN: Final = ("healthz", "livez", "readyz")
"""First parts of paths that a probe may ask for without the token."""


def is_probe(path: str) -> bool:
    """Return whether a path is one of a probe, `/readyz/ping` too."""
    return path.partition("/")[2].partition("/")[0] in OPEN


def is_loopback(host: str) -> bool:
    """Return whether an address to listen on can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _same_host(origin: str, host: str) -> bool:
    """Return whether an Origin names the host and port of a Host header: names are case-insensitive (RFC 3986), and
    either may leave out the default port of the scheme.
    """
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    usual = _USUAL_PORTS.get(parts.scheme.lower(), "")
    return parts.netloc.lower().removesuffix(usual) == host.lower().removesuffix(usual)


@lru_cache(4096)
def _authenticated(user: User) -> User:
    """Return a user with the groups of all users that show credentials."""
    return User(user.name, authenticated(user.groups), user.uid)


OfToken = Callable[[str], Awaitable[User | None]]
"""Return the user of a token that only the api can judge."""


class Authenticator:
    """Finds the users of requests, and checks their origin. `of_token`: knows tokens of ServiceAccounts."""

    def __init__(self, settings: GatewaySettings, of_token: OfToken | None = None) -> None:
        self._token = settings.token.encode()
        self._users = settings.users  # not a copy: more may come
        self._hosts = {"localhost", settings.address[0].lower()}
        self._roles = settings.authorization == "rbac"
        self._open = not (settings.token or settings.users or settings.client_authority or self._roles)
        self._of_token = of_token

    @property
    def asks(self) -> bool:
        """Return whether a browser must show a token."""
        return not self._open

    async def user_of(self, exchange: Exchange) -> User:
        """Return the sender of a request. Raises ApiError (401, 403)."""
        self._from_no_other_page(exchange)
        if self._open:
            self._from_here(exchange)
        found = await self._shown(exchange)
        if found is not None:
            return found
        if self._open:
            return ADMIN
        if is_probe(exchange.path) or (self._roles and not exchange.bearer):
            return NOBODY
        raise unauthorized()

    async def _shown(self, exchange: Exchange) -> User | None:
        """Return the user of the first credentials that are valid."""
        if token := exchange.bearer:
            return await self.of_token(token)
        if exchange.peer and (user := user_of_certificate(exchange.peer)) is not None:
            return user
        return self._of_cookie(exchange) if exchange.method in READS else None

    def admit_to_login(self, exchange: Exchange) -> None:
        """Let in clients that may see the form that asks for the token, and its parts. Raises ApiError (403)."""
        self._from_no_other_page(exchange)
        if self._open:
            self._from_here(exchange)

    async def of_token(self, given: str) -> User | None:
        """Return the user of a token, None for a wrong one."""
        if (user := self.of_known(given)) is not None or self._of_token is None:
            return user
        return await self._of_token(given)

    def of_known(self, given: str) -> User | None:
        """Return the user of a token that this server was started with."""
        given = given.strip()
        # In constant time: a plain comparison would tell by its time how many letters are right. As bytes:
        # compare_digest refuses text that is not ASCII.
        if self._token and hmac.compare_digest(given.encode(), self._token):
            return ADMIN
        # A dict compares by hash first, so the time tells nothing of the letters here either.
        user = self._users.get(given)
        return None if user is None else _authenticated(user)

    def _of_cookie(self, exchange: Exchange) -> User | None:
        # HTTP/2 may split cookies into several headers, which `Exchange.headers` joins with commas.
        pairs = (part.strip().partition("=") for part in exchange.header("cookie").replace(",", ";").split(";"))
        shown = next((value.encode() for name, _, value in pairs if name == COOKIE), b"")
        tokens = [self._token.decode(), *self._users] if shown else ()
        found = (token for token in tokens if token and hmac.compare_digest(cookie_of(token).encode(), shown))
        return self.of_known(next(found, ""))

    def _from_no_other_page(self, exchange: Exchange) -> None:
        origin = exchange.header("origin")
        if origin and not _same_host(origin, exchange.header("host")):
            raise forbidden(f"requests of web pages are not served (Origin: {origin[:200]})")

    def _from_here(self, exchange: Exchange) -> None:
        host = exchange.header("host").lower()
        # Brackets keep the colons of an IPv6 address apart from that of the port.
        name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.rpartition(":")[0] or host
        if host and name not in self._hosts and not is_loopback(name):
            raise forbidden(f"this server is for its own machine only, not for {host[:200]!r}")


def cookie_of(token: str) -> str:
    """Return the value of a browser's cookie in place of a token; its holder may read."""
    return hmac.new(token.encode(), b"the page of pumice", "sha256").hexdigest()
