"""What a client sends may end its own stream or connection: others go on, and no traceback is written."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio
import pytest
from anyio.abc import SocketStream
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, Event, ResponseReceived, StreamReset
from h2.settings import SettingCodes

from pumice.actors.gateway.protocols import MOST_REFUSED
from tests.actors.gateway.rig import PATIENCE_S, PODS, QUEUES, Web, serving

pytestmark = pytest.mark.anyio
LIMIT = 100
"""Streams that hypercorn allows at a time, and says so."""
HEAD = b"GET /version HTTP/1.1\r\nhost: localhost\r\n"


class Streams:
    """An HTTP/2 connection without TLS."""

    def __init__(self, stream: SocketStream) -> None:
        self.h2 = H2Connection(H2Configuration(client_side=True, validate_outbound_headers=False))
        self.h2.initiate_connection()
        self.h2.remote_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = 10 * LIMIT  # a client that does not care
        self.h2.remote_settings.acknowledge()
        self._stream = stream

    def ask(self, path: str, body: bytes | None = None) -> int:
        """A request, without sending it yet; the number of its stream."""
        number = self.h2.get_next_available_stream_id()
        method = "GET" if body is None else "POST"
        headers = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "localhost")]
        self.h2.send_headers(number, headers, end_stream=body is None)
        if body is not None:
            self.h2.send_data(number, body, end_stream=True)
        return number

    async def until(self, number: int) -> Sequence[Event]:
        """What has come once so many streams have an answer or were refused."""
        found: list[Event] = []
        while sum(isinstance(event, ResponseReceived | StreamReset) for event in found) < number:
            await self._stream.send(self.h2.data_to_send())
            found += self.h2.receive_data(await self._stream.receive())
        return found


async def still_serves(web: Web) -> None:
    """Somebody else is answered."""
    assert await web.get("/version")


async def say(web: Web, text: bytes) -> bytes:
    """All that the server answers until it closes the connection."""
    parts: list[bytes] = []
    with anyio.fail_after(PATIENCE_S):
        async with await anyio.connect_tcp(*web.settings.address) as stream:
            await stream.send(text)
            try:
                while True:
                    parts.append(await stream.receive())
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return b"".join(parts)


async def test_streams_beyond_the_limit_are_refused_and_others_live(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as web:
        with anyio.fail_after(PATIENCE_S):
            async with await anyio.connect_tcp(*web.settings.address) as stream:
                client = Streams(stream)
                asked = [client.ask(f"{PODS}?watch=1") for _ in range(LIMIT + 20)]
                found = await client.until(len(asked))
                refused = [event for event in found if isinstance(event, StreamReset)]
                assert {event.error_code for event in refused} == {ErrorCodes.REFUSED_STREAM}
                assert [event.stream_id for event in refused] == asked[LIMIT:]
                client.h2.reset_stream(asked[0])
                client.ask("/version")
                (answer,) = [event for event in await client.until(1) if isinstance(event, ResponseReceived)]
                assert dict(answer.headers or ())[b":status"] == b"200"
        await still_serves(web)
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


async def test_who_asks_on_and_on_loses_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as web:
        with anyio.fail_after(PATIENCE_S):
            async with await anyio.connect_tcp(*web.settings.address) as stream:
                client = Streams(stream)
                for number in range(MOST_REFUSED + LIMIT + 1):
                    asked = client.ask(f"{PODS}?watch=1")
                    if number > LIMIT:  # refused, or on its way to be
                        client.h2.reset_stream(asked)
                await stream.send(client.h2.data_to_send())
                found = list[Event]()
                while not any(isinstance(event, ConnectionTerminated) for event in found):
                    found = client.h2.receive_data(await stream.receive())
        await still_serves(web)
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


async def test_bodies_of_refused_streams_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as web:
        with anyio.fail_after(PATIENCE_S):
            async with await anyio.connect_tcp(*web.settings.address) as stream:
                client = Streams(stream)
                watches = [client.ask(f"{PODS}?watch=1") for _ in range(LIMIT)]
                late = [client.ask(QUEUES, b"{}" * 10) for _ in range(20)]
                found = await client.until(len(watches) + len(late))
                assert sum(isinstance(event, StreamReset) for event in found) == len(late)
        await still_serves(web)
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


@pytest.mark.parametrize("path", ["/\xff", ""])
async def test_a_path_that_is_not_valid_ends_its_stream(path: str, caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as web, await anyio.connect_tcp(*web.settings.address) as stream:
        client = Streams(stream)
        client.ask(path)
        await stream.send(client.h2.data_to_send())
        await still_serves(web)
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


async def test_settings_of_an_upgrade_that_are_not_base64_end_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as web:
        upgrade = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: a\r\n\r\n"
        assert (await say(web, HEAD + upgrade)).startswith(b"HTTP/1.1 101")
        await still_serves(web)
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


@pytest.mark.parametrize("size", [66_000, 100_000, 1_000_000])
async def test_a_head_beyond_64_kib_is_refused(size: int) -> None:
    async with serving() as web:
        fits = HEAD + b"connection: close\r\nx-long: " + b"x" * 64_000 + b"\r\n\r\n"
        assert (await say(web, fits)).startswith(b"HTTP/1.1 200")
        answer = await say(web, HEAD + b"x-long: " + b"x" * size + b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 431"), answer[:200]
        assert b"limit is 65536 bytes" in answer
        many = b"".join(b"x-%d: %s\r\n" % (number, b"y" * 500) for number in range(size // 500))
        assert (await say(web, HEAD + many + b"\r\n")).startswith(b"HTTP/1.1 431")


async def test_a_request_that_is_not_http_is_refused_with_a_status() -> None:
    async with serving() as web:
        answer = await say(web, b"GET /version HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400")
        assert b'"kind":"Status"' in answer


async def test_watches_that_leave_unread_cost_no_log_line(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(watch_limit=20) as web:
        streams = [await anyio.connect_tcp(*web.settings.address) for _ in range(20)]
        for stream in streams:
            await stream.send(b"GET /api/v1/configmaps?watch=1 HTTP/1.1\r\nhost: localhost\r\n\r\n")
        for number in range(60):
            body = {"metadata": {"name": f"c{number}"}, "data": {"x": "y" * 200_000}}
            await web.send("POST", "/api/v1/namespaces/default/configmaps", body, 201)
        for stream in streams:
            await anyio.aclose_forcefully(stream)
        await still_serves(web)
        with anyio.fail_after(PATIENCE_S):  # there is room for another watch once they have gone
            while (await web.http.get(f"{PODS}?watch=1&timeoutSeconds=1")).status_code == 429:  # noqa: ASYNC110
                await anyio.sleep(0.01)
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]
