"""Clients that ask for much and read nothing: memory is bounded, and others are served."""

from __future__ import annotations

import select
import socket
from contextlib import ExitStack

import anyio
import pytest

from pumice.actors.gateway import budget
from pumice.actors.gateway.settings import MIB
from tests.actors.gateway.rig import PATIENCE_S, serving

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
LARGE = 200_000
MANY = 12


def config_map(name: str, size: int) -> dict[str, object]:
    return {"metadata": {"name": name}, "data": {"x": "x" * size}}


def unread(address: tuple[str, int], path: str) -> socket.socket:
    """A connection whose client asks and reads nothing; it takes little by itself."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(address)
    client.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    return client


@pytest.mark.anyio
async def test_unread_watches_give_way_to_one_that_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "SLOW_S", 0.3)
    monkeypatch.setattr(budget, "GRACE_S", 0.1)
    async with serving(client_bytes=3 * MIB) as web:
        with ExitStack() as open_:
            idle = [open_.enter_context(unread(web.settings.address, f"{CONFIG_MAPS}?watch=1")) for _ in range(MANY)]
            async with web.watching(f"{CONFIG_MAPS}?watch=1") as events:
                for number in range(8):
                    await web.send("POST", CONFIG_MAPS, config_map(f"c{number}", LARGE), 201)
                    while (await anext(events))["object"]["metadata"]["name"] != f"c{number}":
                        pass
                with anyio.fail_after(PATIENCE_S):
                    while not any(map(is_cut, idle)):  # noqa: ASYNC110 - nobody tells
                        await anyio.sleep(0.05)
        assert await web.get("/version")


def is_cut(client: socket.socket) -> bool:
    """Whether the server has broken it off; reads nothing."""
    looked = select.poll()
    looked.register(client, select.POLLRDHUP)
    return bool(looked.poll(0))
