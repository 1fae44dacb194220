"""The application that shows a journal which nobody runs: the page, and what it asks the adviser."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from pumice.actors.gateway.advice import GROUP, KINDS
from pumice.actors.gateway.forms import encode
from pumice.actors.gateway.front import Endpoint, Front, Unslashed
from pumice.actors.gateway.handlers.advise import advise
from pumice.actors.gateway.page import assets
from pumice.actors.gateway.page.handlers import home, page_with, wants_page
from pumice.actors.gateway.problems import no_such_path
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.paths import parse_path
from pumice.actors.gateway.request.upgrades import Upgrades


def build_viewer(front: Front, file: str) -> Starlette:
    """`file`: what the journal is called on the page."""

    async def mode(front: Front, exchange: Exchange) -> None:
        plain = {"live": False, "token": bool(front.settings.token), "file": file}
        await exchange.answer(200, encode(plain), headers=assets.HEADERS)

    page: Any = page_with({"mode": mode})
    return Starlette(
        middleware=[Middleware(Upgrades), Middleware(Unslashed)],
        routes=[
            Route("/apis/{group}/{version}/{rest:path}", Endpoint(front, _advise, reads_only=True)),
            Route("/page/{rest:path}", Endpoint(front, page, admits=True)),
            Route("/", Endpoint(front, _root, reads_only=True, admits=True)),
            Route("/{rest:path}", Endpoint(front, _nothing)),
        ],
    )


async def _advise(front: Front, exchange: Exchange) -> None:
    target = parse_path(exchange.path)
    if target is None or target.group != GROUP or KINDS.get(target.plural) is None:
        raise no_such_path()
    await advise(front, exchange, target)


async def _root(front: Front, exchange: Exchange) -> None:
    if not wants_page(exchange):
        front.door.admit(exchange)
        await exchange.answer(200, encode({"paths": [f"/apis/{GROUP}"]}))
        return
    await home(front, exchange)


async def _nothing(front: Front, exchange: Exchange) -> None:
    del front, exchange
    raise no_such_path()
