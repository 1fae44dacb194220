# SPDX-License-Identifier: Apache-2.0
"""The application that shows a journal without a server: the page, and its questions to the adviser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from pumice.actors.gateway.advice import GROUP, KINDS
from pumice.actors.gateway.forms import encode
from pumice.actors.gateway.front import Application, Endpoint, Front
from pumice.actors.gateway.handlers.advise import advise
from pumice.actors.gateway.page import assets
from pumice.actors.gateway.page.handlers import home, page_with, wants_page
from pumice.actors.gateway.problems import no_such_path
from pumice.actors.gateway.request.exchange import Exchange


def build_viewer(front: Front, file: str, damage: Callable[[], Awaitable[str]]) -> Application:
    """Build the viewer. `file`: the journal's name on the page; `damage`: the sentence about damage, once it is known
    (otherwise "").
    """

    async def mode(front: Front, exchange: Exchange) -> None:
        plain = {"live": False, "token": bool(front.settings.token), "file": file}
        await exchange.answer(200, encode(plain), headers=assets.HEADERS)

    async def damaged(_front: Front, exchange: Exchange) -> None:
        await exchange.answer(200, encode({"damage": await damage()}), headers=assets.HEADERS)

    page: Any = page_with({"mode": mode, "damage": damaged})
    return Application(
        [
            (r"/apis/[^/]+/[^/]+/.*", Endpoint(front, _advise, reads_only=True)),
            (r"/page/.*", Endpoint(front, page, admits=True)),
            (r"/", Endpoint(front, _root, reads_only=True, admits=True)),
            (r".*", Endpoint(front, _nothing)),
        ]
    )


async def _advise(front: Front, exchange: Exchange) -> None:
    target = exchange.target
    if target is None or target.group != GROUP or KINDS.get(target.plural) is None:
        raise no_such_path()
    await advise(front, exchange, target)


async def _root(front: Front, exchange: Exchange) -> None:
    if not wants_page(exchange):
        await front.admit(exchange)
        await exchange.answer(200, encode({"paths": [f"/apis/{GROUP}"]}))
        return
    await home(front, exchange)


async def _nothing(_front: Front, _exchange: Exchange) -> None:
    raise no_such_path()
