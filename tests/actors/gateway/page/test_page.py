"""Who gets the page, how somebody comes in with a browser, and what a page is told."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from pumice.actors.gateway.page import broadcast
from tests.actors.gateway.rig import PASSIVE, PODS, Web, serving
from tests.kit.nodes import node
from tests.kit.pods import pod

pytestmark = pytest.mark.anyio

HTML = "text/html,application/xhtml+xml,*/*;q=0.8"
LIVE = replace(PASSIVE, scheduler=True)
Told = tuple[str, dict[str, Any]]


async def test_a_browser_gets_the_page_and_others_get_paths() -> None:
    async with serving() as web:
        page = await web.http.get("/", headers={"accept": HTML})
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "default-src 'none'; script-src 'self'" in page.headers["content-security-policy"]
        assert page.headers["x-content-type-options"] == "nosniff"
        for accept in ("*/*", "application/json", ""):
            assert "/api/v1" in (await web.get("/", accept=accept))["paths"]
        again = await web.http.get("/", headers={"accept": HTML, "if-none-match": page.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


async def test_its_files_and_nothing_else() -> None:
    async with serving() as web:
        script = await web.http.get("/page/main.js")
        assert script.headers["content-type"] == "text/javascript; charset=utf-8"
        for name in ("nothing.js", "assets.py", "__init__.py", "..%2fassets.py", "%2e%2e/assets.py", "assets", ""):
            assert (await web.http.get(f"/page/{name}")).status_code == 404
        assert (await web.http.post("/page/main.js")).status_code == 405


async def test_other_pages_are_not_served() -> None:
    async with serving() as web:
        for path in ("/", "/page/main.js", "/page/live", "/page/mode"):
            found = await web.http.get(path, headers={"accept": HTML, "origin": "http://evil.example"})
            assert found.status_code == 403
            found = await web.http.get(path, headers={"accept": HTML, "host": "evil.example"})
            assert found.status_code == 403


async def test_a_token_is_asked_for_once_and_stands_nowhere() -> None:
    async with serving(token="secret") as web:
        asked = await web.http.get("/", headers={"accept": HTML})
        assert (asked.status_code, "password" in asked.text) == (401, True)
        assert (await web.http.get("/page/mode")).status_code == 401
        assert (await web.http.get("/page/live")).status_code == 401
        assert (await web.http.get("/page/style.css")).status_code == 200
        wrong = await web.http.post("/page/login", data={"token": "wrong"})
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
        said = '<p class="problem" role="alert">This is not the token'
        assert said in wrong.text
        assert said not in asked.text
        right = await web.http.post("/page/login", data={"token": "secret"})
        cookie = right.headers["set-cookie"]
        assert (right.status_code, right.headers["location"]) == (303, "/")
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "secret" not in cookie
        assert (await web.http.get("/page/mode")).json()["token"] is True
        assert (await web.http.get("/", headers={"accept": HTML})).status_code == 200
        assert (await web.http.get(PODS)).status_code == 200


async def test_the_cookie_reads_and_no_more() -> None:
    async with serving(token="secret") as web:
        await web.http.post("/page/login", data={"token": "secret"})
        assert (await web.http.post(PODS, json=pod("p"))).status_code == 401
        assert (await web.http.delete(f"{PODS}/p")).status_code == 401
        out = await web.http.post("/page/logout")
        assert "Max-Age=0" in out.headers["set-cookie"]
        assert (await web.http.get("/page/mode")).status_code == 401
    async with serving(token="another") as web:
        assert (await web.http.get("/page/mode", headers={"cookie": f"pumice={'0' * 64}"})).status_code == 401


class LiveEvents:
    """The server-sent events of one stream, one by one."""

    def __init__(self, stream: BufferedByteReceiveStream) -> None:
        self._stream, self._text = stream, b""

    async def next(self) -> Told:
        while True:
            one, ended, rest = self._text.partition(b"\n\n")
            if not ended:
                self._text += await self._chunk()
                continue
            self._text = rest
            kind, _, data = one.partition(b"\ndata: ")
            if data:
                return kind.decode().removeprefix("event: "), json.loads(data)

    async def _chunk(self) -> bytes:
        size = int(await self._stream.receive_until(b"\r\n", 64), 16)
        found = await self._stream.receive_exactly(size)
        await self._stream.receive_exactly(2)
        return found


@asynccontextmanager
async def followed(web: Web) -> AsyncGenerator[LiveEvents]:
    """The events of a page that is open."""
    with anyio.fail_after(30):
        async with await anyio.connect_tcp(*web.settings.address) as stream:
            await stream.send(b"GET /page/live HTTP/1.1\r\nhost: localhost\r\n\r\n")
            buffered = BufferedByteReceiveStream(stream)
            head = await buffered.receive_until(b"\r\n\r\n", 65536)
            assert b"text/event-stream" in head
            yield LiveEvents(buffered)


async def first(events: LiveEvents, kind: str) -> dict[str, Any]:
    """The next event of that kind."""
    while True:
        found, data = await events.next()
        if found == kind:
            return data


async def test_a_page_is_told_what_is_there_and_what_changes() -> None:
    async with serving(settings=LIVE) as web:
        await web.send("POST", "/api/v1/nodes", node("n0", cpu="8"), 201)
        await web.system.until_idle()
        async with followed(web) as events:
            board = await first(events, "board")
            assert board["nodes"] == ["n0"]
            cpu = board["resources"].index("cpu")
            assert (board["allocatable"][cpu], board["used"][cpu]) == ([8.0], [0.0])
            await web.send("POST", PODS, pod("p", cpu="2", node="n0", scheduler="nobody"), 201)
            change = await first(events, "change")
            assert (change["rows"], change["used"][cpu]) == ([0], [2.0])
            residents = await web.get("/page/nodes/n0")
            assert [each["pod"] for each in residents["pods"]] == ["default/p"]
            async with followed(web) as late:
                assert (await first(late, "board"))["used"][cpu] == [2.0]
        assert (await web.http.get("/page/nodes/nowhere")).status_code == 404


async def test_cycles_and_queues_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast, "LATEST_S", broadcast.PERIOD_S)
    monkeypatch.setattr(broadcast, "QUEUES_S", broadcast.PERIOD_S)
    async with serving(settings=LIVE) as web:
        await web.send("POST", "/api/v1/nodes", node("n0"), 201)
        async with followed(web) as events:
            told = await first(events, "cycles")
            while not told["cycles"]:
                told = await first(events, "cycles")
            newest = told["cycles"][-1]
            assert newest["total_s"] >= newest["open_s"] > 0
            assert "enqueue" in newest["actions"]
            await web.send("POST", "/api/v1/nodes", node("n1"), 201)
            await web.send("POST", "/api/v1/nodes", node("n2"), 201)  # the last change is told as well, if later
            with anyio.fail_after(30):
                while (await first(events, "queues"))["queues"]["default"]["capability"].get("cpu") != 24.0:
                    pass


async def test_nobody_schedules_here() -> None:
    async with serving() as web:
        assert (await web.get("/page/mode"))["scheduler"] is False
        assert (await web.http.get("/page/nodes/n0")).status_code == 503
        async with followed(web) as events:
            assert await first(events, "cycles") == {"cycles": [], "anew": True}
            assert await first(events, "queues") == {"queues": {}, "cards": {}}
