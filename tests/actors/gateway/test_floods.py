"""Clients that ask for much and read nothing: memory is bounded, and others are served."""

from __future__ import annotations

import select
import socket
from contextlib import ExitStack

import anyio
import pytest

from pumice.actors.gateway import budget
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.settings import MIB
from pumice.cluster.api import store
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


@pytest.mark.anyio
async def test_listings_that_were_dropped_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_LISTINGS", 3)
    async with serving() as web:
        await web.send("POST", CONFIG_MAPS, config_map("c", 10), 201)
        found = list[list[str]]()

        async def watched() -> None:
            async with web.watching(f"{CONFIG_MAPS}?watch=1") as events:
                found.append([(await anext(events))["object"]["metadata"]["name"]])

        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as tasks:
                for _ in range(MANY):
                    tasks.start_soon(watched)
    assert found == [["c"]] * MANY


@pytest.mark.anyio
async def test_parts_are_made_once_there_is_room_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that wait for room hold a request's worth and no part of an answer."""
    monkeypatch.setattr(budget, "STALLED_S", 0.3)
    monkeypatch.setattr(budget, "SLOW_S", 0.3)
    made, first = list[int](), anyio.Event()
    chunk = Exchange.part

    async def counted(exchange: Exchange, data: bytes) -> None:
        made.append(len(data))
        first.set()
        await chunk(exchange, data)

    async with serving(client_bytes=4 * MIB) as web:
        for number in range(6):
            await web.send("POST", CONFIG_MAPS, config_map(f"c{number}", 2 * LARGE), 201)
        monkeypatch.setattr(Exchange, "part", counted)
        with ExitStack() as open_:
            for _ in range(MANY):
                open_.enter_context(unread(web.settings.address, CONFIG_MAPS))
            with anyio.fail_after(PATIENCE_S):
                await first.wait()
            await anyio.sleep(0.2)  # time in which the others would make theirs
            assert len(made) < MANY, "the others wait for room"
        monkeypatch.setattr(Exchange, "part", chunk)
        assert len((await web.get(f"{CONFIG_MAPS}?labelSelector=!none"))["items"]) > 6
