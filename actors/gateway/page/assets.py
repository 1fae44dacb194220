# SPDX-License-Identifier: Apache-2.0
"""The files of the page, from the package: read once, sent with headers that allow the browser nothing else."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.actors.gateway.problems import no_such_path

if TYPE_CHECKING:
    from pumice.actors.gateway.request.exchange import Exchange

HOME: Final = "index.html"
LOGIN: Final = "login.html"
WRONG_TOKEN: Final = "wrong-token.html"
"""The form once more, with the line that is hidden in it."""
_HIDDEN: Final = b" hidden>"
TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}


class Asset(NamedTuple):
    """One file of the page; `tag` changes with the file's content."""

    body: bytes
    media: str
    tag: str


# Bounded by the files of the page: an error for another name is not cached.
@cache
def asset(name: str) -> Asset:
    """Return a file. Raises ApiError (404) for a name that is not a file of the page."""
    media = TYPES.get(name.rpartition(".")[2])
    # A slash could lead out of the folder.
    if media is None or "/" in name:
        raise no_such_path()
    shown = LOGIN if name == WRONG_TOKEN else name
    file = resources.files("pumice.actors.gateway.page").joinpath("assets", shown)
    if not file.is_file():
        raise no_such_path()
    body = file.read_bytes()
    body = body.replace(_HIDDEN, b">") if name == WRONG_TOKEN else body
    return Asset(body, media, f'"{hashlib.sha256(body).hexdigest()[:20]}"')


async def send(exchange: Exchange, name: str, status: int = 200) -> None:
    """Send a file, or that the browser has it already. Raises ApiError (404)."""
    found = asset(name)
    headers = {**HEADERS, "etag": found.tag, "vary": "accept, cookie"}
    if status == 200 and exchange.header("if-none-match") == found.tag:
        await exchange.answer(304, b"", found.media, headers)
        return
    await exchange.answer(status, found.body, found.media, headers)
