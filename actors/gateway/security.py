"""Who may come in: everybody on the loopback, elsewhere those with the token; of web pages only this server's own.

A page in somebody's browser can send requests to the loopback as well. It gives itself away by its Origin, or (after
its name was made to point here) by a Host that is no address of this server.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from pumice.actors.gateway.problems import forbidden, unauthorized
from pumice.actors.gateway.request.exchange import Exchange

COOKIE: Final = "pumice"
READS: Final = ("GET", "HEAD")
_USUAL_PORTS: Final = {"http": ":80", "https": ":443"}
OPEN: Final = ("/healthz", "/livez", "/readyz")
"""What a probe may ask without the token."""


def is_loopback(host: str) -> bool:
    """Whether an address to listen on can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _same_host(origin: str, host: str) -> bool:
    """Whether an Origin names the host and port of a Host header: names have no case (RFC 3986), and a port that is the
    scheme's own may be left out of either.
    """
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    usual = _USUAL_PORTS.get(parts.scheme.lower(), "")
    return parts.netloc.lower().removesuffix(usual) == host.lower().removesuffix(usual)


class Doorkeeper:
    """`token` "" asks for none; `host` is where the server listens."""

    def __init__(self, token: str, host: str) -> None:
        self._token = token.encode()
        self._hosts = {"localhost", host.lower()}
        self._check: Callable[[Exchange], None] = self._token_given if token else self._from_here

    def admit(self, exchange: Exchange) -> None:
        """Raises ApiError (401, 403)."""
        self._from_no_other_page(exchange)
        self._check(exchange)

    def admit_strangers(self, exchange: Exchange) -> None:
        """Whoever may see the form that asks for the token, and what it is made of. Raises ApiError (403)."""
        self._from_no_other_page(exchange)
        if not self._token:
            self._from_here(exchange)

    def is_token(self, given: str) -> bool:
        """Whether somebody knows the token."""
        return bool(self._token) and hmac.compare_digest(given.strip().encode(), self._token)

    def pass_for_pages(self) -> str:
        """What a browser's cookie holds in place of the token; who has it may read."""
        return hmac.new(self._token, b"the page of pumice", "sha256").hexdigest()

    def _from_no_other_page(self, exchange: Exchange) -> None:
        origin = exchange.header("origin")
        if origin and not _same_host(origin, exchange.header("host")):
            raise forbidden(f"requests of web pages are not served (Origin: {origin[:200]})")

    def _token_given(self, exchange: Exchange) -> None:
        if exchange.path.partition("/")[2].partition("/")[0] in {path.strip("/") for path in OPEN}:
            return
        if self.is_token(exchange.bearer):
            return
        if exchange.method not in READS or not self._has_pass(exchange):
            raise unauthorized()

    def _has_pass(self, exchange: Exchange) -> bool:
        known = self.pass_for_pages().encode()
        pairs = (part.strip().partition("=") for part in exchange.header("cookie").replace(",", ";").split(";"))
        return any(name == COOKIE and hmac.compare_digest(value.encode(), known) for name, _, value in pairs)

    def _from_here(self, exchange: Exchange) -> None:
        host = exchange.header("host").lower()
        name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.rpartition(":")[0] or host
        if host and name not in self._hosts and not is_loopback(name):
            raise forbidden(f"this server is for its own machine only, not for {host[:200]!r}")
