"""What is left of connections that are over."""

import gc
import socket
import ssl
import struct
import sys
from asyncio import Transport
from collections import Counter
from pathlib import Path

import anyio
import httpx
import pytest

from pumice.actors.gateway import server
from pumice.actors.gateway.budget import LoopTurns
from pumice.actors.gateway.settings import WAITING
from pumice.testing.certificates import made_certificate
from tests.actors.gateway.rig import PATIENCE_S, PODS, Web, pod_of, serving

pytestmark = pytest.mark.anyio


def kept(port: int) -> Counter[str]:
    """Parts of a server's connections that are still there, by type: hypercorn's two, and asyncio's."""
    found = Counter[str]()
    for each in gc.get_objects():
        name = type(each).__name__
        of_server = issubclass(type(each), Transport) and port_of(each) == port
        found[name] += of_server or name in ("H11Protocol", "PromptServer")
    return found


def port_of(transport: Transport) -> int:
    """Its own port, even if it is closed."""
    return int(transport.get_extra_info("sockname", ("", 0))[1])


async def hang_up(web: Web) -> None:
    """In the middle of a request, and with a watch open."""
    async with await anyio.connect_tcp(*web.settings.address) as stream:
        await stream.send(b"GET /api/v1/pods HTTP/1.1\r\nhost: x")
    async with web.watching("/api/v1/pods?watch=1"):
        pass


async def test_nothing_is_left_to_the_collector() -> None:
    """What has lived long, as watches have, it hardly ever looks at."""
    async with serving() as web:
        await web.get("/api/v1/pods")
        gc.collect()
        gc.disable()
        try:
            for _ in range(5):
                await hang_up(web)
            with anyio.fail_after(PATIENCE_S):
                while max(kept(web.settings.address[1]).values()) > 1:  # noqa: ASYNC110 - until only that of `web` is left
                    await anyio.sleep(0.01)
        finally:
            gc.enable()


async def test_a_watch_over_tls_goes_on_after_its_first_part(tmp_path: Path) -> None:
    certificate = made_certificate(tmp_path)
    async with serving(certificate=certificate, key=certificate) as web:
        trusted = ssl.create_default_context(cafile=str(certificate))
        asked = f"GET {PODS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        async with httpx.AsyncClient(base_url=web.settings.url, verify=trusted) as http:
            assert (await http.post(PODS, json=pod_of("first"))).status_code == 201
            host, port = web.settings.address
            async with await anyio.connect_tcp(
                host, port, ssl_context=trusted, tls_standard_compatible=False
            ) as stream:
                await stream.send(f"{asked} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
                told, wanted = b"", [b'"first"', b"initial-events-end", b'"second"']
                with anyio.fail_after(PATIENCE_S):
                    while b"initial-events-end" not in told:
                        told += await stream.receive()
                    assert (await http.post(PODS, json=pod_of("second"))).status_code == 201
                    while b'"second"' not in told:
                        told += await stream.receive()
        places = [told.index(each) for each in wanted]
        assert places == sorted(places)


async def test_unused_connections_are_closed_and_a_watch_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "IDLE_S", 1.0)
    async with serving() as web, web.watching("/api/v1/pods?watch=1") as events:
        async with await anyio.connect_tcp(*web.settings.address) as used:
            await used.send(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
            with anyio.fail_after(PATIENCE_S):
                assert b"ok" in await used.receive()
                with pytest.raises(anyio.EndOfStream):
                    await used.receive()
        await web.send("POST", PODS, pod_of("a"), 201)
        assert (await anext(events))["object"]["metadata"]["name"] == "a"


async def test_a_probe_is_answered_while_others_wait_in_line(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as web:
        passed = anyio.Event()

        async def take(_self: LoopTurns) -> None:
            await passed.wait()

        monkeypatch.setattr(LoopTurns, "take", take)
        async with await anyio.connect_tcp(*web.settings.address) as other:
            await other.send(b"GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n")
            with anyio.fail_after(PATIENCE_S):
                assert (await web.http.get("/livez")).text == "ok"
            with anyio.move_on_after(0.2) as waited:
                await other.receive()
            assert waited.cancelled_caught
            passed.set()
            with anyio.fail_after(PATIENCE_S):
                assert (await other.receive()).startswith(b"HTTP/1.1 200")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the length of the queue")
async def test_thousands_may_wait_to_be_accepted() -> None:
    """When the queue is full the kernel drops them, and a probe would try again only after a second."""
    async with serving() as web:
        await web.get("/version")
        told = web.settings.listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32)
        bound = int(await anyio.Path("/proc/sys/net/core/somaxconn").read_text("ascii"))
        # tcpi_sacked: of a listening socket it is the most that may wait (tcp_diag_get_info in Linux).
        assert struct.unpack_from("I", told, 28)[0] == min(WAITING, bound)
