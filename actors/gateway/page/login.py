"""Coming in with a browser: the token is given once, in a form, and never stands in an address.

The cookie is no token: it lets somebody read, from pages of this server only, and ends with the token it was made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from pumice.actors.gateway.page import assets
from pumice.actors.gateway.security import COOKIE

if TYPE_CHECKING:
    from pumice.actors.gateway.request.exchange import Exchange
    from pumice.actors.gateway.security import Doorkeeper

FORM: Final = 8192
"""Bytes of a form."""


async def log_in(door: Doorkeeper, exchange: Exchange, *, secure: bool) -> None:
    """Set the cookie and go to the page; the form again for another token. Raises ApiError (403, 413)."""
    door.admit_strangers(exchange)
    body = await exchange.body(FORM)
    given = parse_qs(body.decode("utf-8", "replace"), max_num_fields=4).get("token", [""])[0]
    if not door.is_token(given):
        await assets.send(exchange, assets.WRONG_TOKEN if given.strip() else assets.LOGIN, 401)
        return
    await _go_home(exchange, door.pass_for_pages(), secure=secure)


async def log_out(door: Doorkeeper, exchange: Exchange, *, secure: bool) -> None:
    """Take the cookie away. Raises ApiError (403)."""
    door.admit_strangers(exchange)
    await exchange.body(FORM)
    await _go_home(exchange, "", secure=secure)


async def _go_home(exchange: Exchange, value: str, *, secure: bool) -> None:
    cookie = f"{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict"
    cookie += "; Secure" if secure else ""
    cookie += "" if value else "; Max-Age=0"
    await exchange.answer(303, b"", "text/plain", {**assets.HEADERS, "location": "/", "set-cookie": cookie})
